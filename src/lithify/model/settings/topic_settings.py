"""The settings of a topic as one value, its defaults and presets; `table.py` defines what each setting means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from lithify.errors import InvalidSettingError
from lithify.errors.redaction import error_text
from lithify.model.names import nearest
from lithify.model.settings.foreign import counterpart
from lithify.model.settings.table import LEAST_SWEEP_GRACE_MS, NO_LIMIT, SETTINGS, Order, Strategy, order_of_strategy

CompactionMode = Literal["in-place", "side-by-side"]
NullKey = Literal["reject", "drop", "retain"]
EmptyValue = Literal["value", "tombstone"]
MessageIds = Literal["none", "pulsar"]


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The settings of one topic. Times in milliseconds, sizes in bytes; -1 is "no limit"."""

    compaction_mode: CompactionMode = "in-place"
    cleanup_policy: str = "compact"
    compaction_strategy: Strategy = "offset"
    compaction_strategy_header: str = ""
    null_key: NullKey = "reject"
    empty_value: EmptyValue = "value"
    delete_retention_ms: int = 86_400_000
    tombstone_hold_groups: str = ""
    tombstone_hold_max_ms: int = 604_800_000
    backlog_trim_groups: str = ""
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    min_compaction_lag_from: Literal["timestamp", "commit"] = "timestamp"
    min_compaction_lag_bytes: int = 0
    max_compaction_lag_ms: int = NO_LIMIT
    compaction_threshold_bytes: int = NO_LIMIT
    retention_ms: int = 604_800_000
    retention_bytes: int = NO_LIMIT
    segment_bytes: int = 134_217_728
    segment_max_dead_ratio: float = 0.33
    key_index_enable: Literal["true", "false"] = "false"
    compression_type: str = "zstd"
    message_timestamp_type: Literal["CreateTime", "LogAppendTime"] = "CreateTime"
    message_timestamp_after_max_ms: int = 3_600_000
    message_ids: MessageIds = "none"
    max_message_bytes: int = 1_048_588
    versions_retention_ms: int = 86_400_000
    versions_kept: int = 20
    sweep_grace_ms: int = 86_400_000

    @property
    def compacts(self) -> bool:
        return "compact" in self.cleanup_policy.split(",")

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy.split(",")

    @property
    def order(self) -> Order | None:
        """What decides before the offset which record of a key is the latest (C10); None if nothing does."""
        return order_of_strategy(self.compaction_strategy, self.compaction_strategy_header)

    @property
    def side_by_side(self) -> bool:
        return self.compaction_mode == "side-by-side"

    @property
    def holding_groups(self) -> tuple[str, ...]:
        """Consumer groups that hold tombstones (C61)."""
        return _names(self.tombstone_hold_groups)

    @property
    def trimming_groups(self) -> tuple[str, ...]:
        """Consumer groups whose positions let the backlog be trimmed (C62)."""
        return _names(self.backlog_trim_groups)

    @property
    def named_groups(self) -> frozenset[str]:
        """All consumer groups whose positions count for rounds."""
        return frozenset(self.holding_groups + self.trimming_groups)

    @property
    def indexes_keys(self) -> bool:
        return self.key_index_enable == "true"

    @property
    def retains(self) -> bool:
        """Whether whole segments may leave the front of a log (C24, C62)."""
        return self.deletes or bool(self.trimming_groups)

    @property
    def empty_is_tombstone(self) -> bool:
        return self.empty_value == "tombstone"


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
    "mapr": {"min.compaction.lag.from": "commit"},
}


def settings_of(config: Mapping[str, object], *, like: str = "kafka") -> TopicSettings:
    """The settings of a preset, overridden by `config` (Kafka's dotted names).

    Values may be text or numbers. Raises `InvalidSettingError`, which names the setting and what
    it accepts.
    """
    return changed(TopicSettings(), {**preset(like), **config})


def preset(like: str) -> Mapping[str, str]:
    """The settings that a system has other defaults for. Raises `InvalidSettingError`."""
    if like not in _PRESETS:
        raise InvalidSettingError(f"like={like}: no such preset", hint=f"accepted: {', '.join(_PRESETS)}")
    return _PRESETS[like]


def stored_settings(config: Mapping[str, str]) -> TopicSettings:
    """Settings from a topic's metadata: values that an earlier version accepted are moved into today's bounds."""
    grace = SETTINGS["sweep.grace.ms"]
    least = max(int(config.get(grace.name, TopicSettings().sweep_grace_ms)), LEAST_SWEEP_GRACE_MS)
    header = config.get(_HEADER, "").encode(errors="replace").decode()
    return settings_of({**config, grace.name: least, _HEADER: header})


def changed(settings: TopicSettings, config: Mapping[str, object]) -> TopicSettings:
    """`settings` overridden by `config`, checked as a whole."""
    parsed: dict[str, Any] = {}
    for name, value in config.items():
        setting = SETTINGS.get(name)
        if setting is None:
            raise InvalidSettingError(f"{name}: no such setting", hint=_nearest(name))
        try:
            parsed[setting.attribute] = setting.parse(str(value))
        except ValueError as error:
            raise InvalidSettingError(
                f"{name}={error_text(str(value), _SHOWN)}: {error}", hint=f"accepted: {setting.accepts}"
            ) from None
    result = replace(settings, **parsed)
    _check_consistent(result)
    return result


def unset(settings: TopicSettings, names: Iterable[str]) -> TopicSettings:
    """`settings` with these back at their defaults. Raises `InvalidSettingError` for an unknown name."""
    names = tuple(names)
    for name in names:
        if name not in SETTINGS:
            raise InvalidSettingError(f"{name}: no such setting", hint=_nearest(name))
    return replace(settings, **{SETTINGS[n].attribute: getattr(TopicSettings(), SETTINGS[n].attribute) for n in names})


def changes(before: TopicSettings, after: TopicSettings) -> tuple[str, ...]:
    """The names of the settings that differ, in the order of the table."""
    return tuple(s.name for s in SETTINGS.values() if getattr(before, s.attribute) != getattr(after, s.attribute))


def to_config(settings: TopicSettings) -> dict[str, str]:
    """Every setting under its dotted name, as text: the inverse of `settings_of`."""
    return {f.name.replace("_", "."): str(getattr(settings, f.name)) for f in fields(settings)}


def to_stored(settings: TopicSettings) -> dict[str, str]:
    """What a topic's metadata has: every setting, but settings of later Lithifys only if they are not the default.

    Metadata of other topics is the same as before these settings existed. An earlier Lithify does not support them, and
    refuses a topic whose records it would strip of their ids, or whose tombstones it would not hold.
    """
    plain = to_config(TopicSettings())
    return {
        name: text for name, text in to_config(settings).items() if name not in _STORED_IF_SET or text != plain[name]
    }


_HEADER = "compaction.strategy.header"
_SHOWN = 200
"""Characters of a refused value that are repeated."""

_STORED_IF_SET = frozenset(
    {
        "message.ids",
        "tombstone.hold.groups",
        "tombstone.hold.max.ms",
        "backlog.trim.groups",
        "segment.max.dead.ratio",
        "key.index.enable",
    }
)
"""Every setting that format 3 did not have: earlier versions refuse a topic that stores a name they do not know."""


def _names(listed: str) -> tuple[str, ...]:
    return tuple(listed.split(",")) if listed else ()


def _check_consistent(settings: TopicSettings) -> None:
    least, most = settings.min_compaction_lag_ms, settings.max_compaction_lag_ms
    if most != NO_LIMIT and least > most:
        raise InvalidSettingError(
            f"min.compaction.lag.ms={least} is above max.compaction.lag.ms={most}",
            hint="lower one or raise the other: a record cannot be required to be compacted before it may be",
        )
    if settings.compaction_strategy == "header" and not settings.compaction_strategy_header:
        raise InvalidSettingError(
            "compaction.strategy=header needs compaction.strategy.header",
            hint="set it to the header that has the order of a record",
        )
    if settings.side_by_side and not settings.compacts:
        raise InvalidSettingError(
            f"compaction.mode=side-by-side needs compact in cleanup.policy, but it is {settings.cleanup_policy}",
            hint="set cleanup.policy to compact or compact,delete: otherwise the topic has no compacted view",
        )
    if settings.backlog_trim_groups and not settings.side_by_side:
        raise InvalidSettingError(
            f"backlog.trim.groups={settings.backlog_trim_groups} needs compaction.mode=side-by-side",
            hint="set compaction.mode=side-by-side, or remove the groups, even inherited ones, with "
            "`backlog.trim.groups=`",
        )


def _nearest(name: str) -> str:
    return counterpart(name) or nearest(name, SETTINGS, f"known: {', '.join(SETTINGS)}")
