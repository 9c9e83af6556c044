"""The settings of a topic: names, meaning, presets, and what each accepts (contract, section 10).

Names shared with Kafka mean what they mean there. Values are kept as one frozen `TopicSettings`;
`SETTINGS` is the table from which parsing, help and documentation are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from lithify.errors import InvalidSettingError
from lithify.model.units import parse_duration_ms, parse_size_bytes

CompactionMode = Literal["in-place", "side-by-side"]
NullKey = Literal["reject", "drop", "retain"]
EmptyValue = Literal["value", "tombstone"]
Preset = Literal["kafka", "pulsar", "mapr"]

NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What a topic promises. Times in milliseconds, sizes in bytes; -1 is "no limit"."""

    compaction_mode: CompactionMode = "in-place"
    cleanup_policy: str = "compact"
    compaction_strategy: str = "offset"
    null_key: NullKey = "reject"
    empty_value: EmptyValue = "value"
    delete_retention_ms: int = 86_400_000
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_compaction_lag_bytes: int = 0
    max_compaction_lag_ms: int = NO_LIMIT
    compaction_threshold_bytes: int = NO_LIMIT
    retention_ms: int = 604_800_000
    retention_bytes: int = NO_LIMIT
    segment_bytes: int = 134_217_728
    compression_type: str = "zstd"
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    message_timestamp_after_max_ms: int = 3_600_000
    max_message_bytes: int = 1_048_588
    versions_retention_ms: int = 86_400_000
    versions_kept: int = 20
    sweep_grace_ms: int = 86_400_000

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy.split(",")

    @property
    def empty_is_tombstone(self) -> bool:
        return self.empty_value == "tombstone"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table of settings."""

    name: str
    accepts: str
    doc: str
    parse: Callable[[str], object] = field(repr=False)

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")


def _choice(*allowed: str, later: tuple[str, ...] = ()) -> dict[str, Any]:
    def parse(text: str) -> str:
        if text in later:
            raise ValueError(f"{text!r} is part of the contract but not of this version yet")
        if text not in allowed:
            raise ValueError(f"{text!r} is none of them")
        return text

    return {"accepts": " or ".join(allowed), "parse": parse}


def _number(parse: Callable[[str], int], kind: str, least: int) -> dict[str, Any]:
    def parse_bounded(text: str) -> int:
        number = parse(text)
        if not least <= number <= 2**63 - 1:
            raise ValueError(f"{number} is out of range")
        return number

    no_limit = " (-1: no limit)" if least == NO_LIMIT else ""
    return {"accepts": f"{kind}, {least} or more{no_limit}", "parse": parse_bounded}


def _duration(least: int = 0) -> dict[str, Any]:
    return _number(parse_duration_ms, "milliseconds, or a duration such as 7d", least)


def _size(least: int = 0) -> dict[str, Any]:
    return _number(parse_size_bytes, "bytes, or a size such as 128MiB", least)


def _ratio(text: str) -> float:
    ratio = float(text)
    if not 0 <= ratio <= 1:
        raise ValueError(f"{ratio} is out of range")
    return ratio


_TABLE = (
    Setting(
        "compaction.mode",
        doc="In place: the compacted log replaces the old one. Side by side: the backlog stays as written.",
        **_choice("in-place", later=("side-by-side",)),
    ),
    Setting(
        "cleanup.policy",
        doc="What is done to old records: compact keeps the latest of every key.",
        **_choice("compact", later=("delete", "compact,delete", "delete,compact")),
    ),
    Setting(
        "compaction.strategy",
        doc="Which record of a key wins; offset: the one with the highest offset.",
        **_choice("offset", later=("timestamp", "header")),
    ),
    Setting(
        "null.key",
        doc="Records without a key: refused at append, dropped by the next round, or kept.",
        **_choice("reject", "drop", "retain"),
    ),
    Setting(
        "empty.value",
        doc="Whether a value of zero bytes is a value or deletes its key, as null does.",
        **_choice("value", "tombstone"),
    ),
    Setting(
        "delete.retention.ms",
        doc="How long a tombstone stays readable after the first round that covered it.",
        **_duration(),
    ),
    Setting(
        "min.cleanable.dirty.ratio",
        accepts="a number from 0 to 1",
        doc="A log is due when more than this share of its bytes is dirty.",
        parse=_ratio,
    ),
    Setting(
        "min.compaction.lag.ms",
        doc="Records younger than this are not compacted.",
        **_duration(),
    ),
    Setting(
        "min.compaction.lag.bytes",
        doc="The newest bytes of a log that are not compacted.",
        **_size(),
    ),
    Setting(
        "max.compaction.lag.ms",
        doc="A log is due at the latest when its oldest dirty record is this old.",
        **_duration(NO_LIMIT),
    ),
    Setting(
        "compaction.threshold.bytes",
        doc="A log is due when it has more dirty bytes than this.",
        **_size(NO_LIMIT),
    ),
    Setting("retention.ms", doc="With policy delete: how old records may get.", **_duration(NO_LIMIT)),
    Setting("retention.bytes", doc="With policy delete: how large a log may get.", **_size(NO_LIMIT)),
    Setting("segment.bytes", doc="Size of a written segment, compressed.", **_size(1024)),
    Setting(
        "compression.type",
        doc="Codec of the segments that are written from now on.",
        **_choice("zstd", "snappy", "gzip", "lz4", "none"),
    ),
    Setting(
        "message.timestamp.type",
        doc="Whether a record keeps its producer's time or gets the time of the append.",
        **_choice("CreateTime", "LogAppendTime"),
    ),
    Setting(
        "message.timestamp.after.max.ms",
        doc="A record further in the future than this is refused at append.",
        **_duration(),
    ),
    Setting("max.message.bytes", doc="A larger record is refused at append.", **_size(1)),
    Setting(
        "versions.retention.ms",
        doc="How long the files of a version stay after a commit stopped naming them.",
        **_duration(),
    ),
    Setting(
        "versions.kept",
        doc="How many versions from before a round stay usable by versions, undo and verify.",
        **_number(int, "a number", 1),
    ),
    Setting(
        "sweep.grace.ms",
        doc="How old a file that no version ever named must be before sweep may delete it.",
        **_duration(),
    ),
)

SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _TABLE}

_PRESETS: Mapping[str, Mapping[str, str]] = {
    "kafka": {},
    "pulsar": {
        "compaction.mode": "side-by-side",
        "null.key": "drop",
        "empty.value": "tombstone",
        "delete.retention.ms": "0",
        "min.cleanable.dirty.ratio": "1",
        "compaction.threshold.bytes": "104857600",
    },
    "mapr": {},
}


def settings_of(config: Mapping[str, object], *, like: str = "kafka") -> TopicSettings:
    """The settings of a preset with `config` (Kafka's dotted names) laid over it.

    Values may be text or numbers. Raises `InvalidSettingError`, which names the setting and what
    it accepts.
    """
    if like not in _PRESETS:
        raise InvalidSettingError(f"like={like}: no such preset", hint=f"accepted: {', '.join(_PRESETS)}")
    return changed(TopicSettings(), {**_PRESETS[like], **config})


def changed(settings: TopicSettings, config: Mapping[str, object]) -> TopicSettings:
    """`settings` with `config` laid over it, checked as a whole."""
    parsed: dict[str, Any] = {}
    for name, value in config.items():
        setting = SETTINGS.get(name)
        if setting is None:
            raise InvalidSettingError(f"{name}: no such setting", hint=_nearest(name))
        try:
            parsed[setting.attribute] = setting.parse(str(value))
        except ValueError as error:
            raise InvalidSettingError(f"{name}={value}: {error}", hint=f"accepted: {setting.accepts}") from None
    result = replace(settings, **parsed)
    _check_consistent(result)
    return result


def to_config(settings: TopicSettings) -> dict[str, str]:
    """Every setting under its dotted name, as text: the inverse of `settings_of`."""
    return {f.name.replace("_", "."): str(getattr(settings, f.name)) for f in fields(settings)}


def _check_consistent(settings: TopicSettings) -> None:
    least, most = settings.min_compaction_lag_ms, settings.max_compaction_lag_ms
    if most != NO_LIMIT and least > most:
        raise InvalidSettingError(
            f"min.compaction.lag.ms={least} is above max.compaction.lag.ms={most}",
            hint="a record would have to be compacted before it may be: lower one or raise the other",
        )


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, SETTINGS, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(SETTINGS)}"
