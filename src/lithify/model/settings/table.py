"""The table of settings: names, meaning, and what each accepts (docs/reference/settings.md).

Parsing, help and documentation use it. Names shared with Kafka mean what they mean there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from lithify.errors import InvalidNameError
from lithify.model.names import checked_group
from lithify.model.settings.units import parse_duration_ms, parse_size_bytes

NO_LIMIT = -1

MAX_PARTITIONS = 10_000
"""Partitions of one topic: its metadata keeps some 100 bytes of state for each."""

MAX_GROUPS = 100
"""Groups that one setting names: plans, reports and `status` have an entry for each, of every log."""

LEAST_SWEEP_GRACE_MS = 60_000
"""Runs write four heartbeats within `sweep.grace.ms`: with less, runs of a busy machine would expire."""


Strategy = Literal["offset", "timestamp", "header"]
"""Values of `compaction.strategy`: what decides, before the offset, which record of a key is the latest (C10).

One whose order is a whole number in a column of every record is added here alone. For one of another kind mypy names
the places that take an order: from a record, from columns of Arrow, from columns of Spark, and for a tombstone that has
to win.
"""


@dataclass(frozen=True, slots=True)
class ByColumn:
    """The number in a field of `Record`, which is a column of that name in segments; every record has one."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ByHeader:
    """The number in the last header of that name; a record may have none."""

    name: str

    def __str__(self) -> str:
        return f"header:{self.name}"


Order = ByColumn | ByHeader


def order_of_strategy(strategy: Strategy, header: str) -> Order | None:
    """None if the offset decides alone. `header` is the value of `compaction.strategy.header`."""
    match strategy:
        case "offset":
            return None
        case "timestamp":
            return ByColumn("timestamp")
        case "header":
            return ByHeader(header)


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


def _choice(*allowed: str) -> dict[str, Any]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"{text!r} is not an accepted value")
        return text

    return {"accepts": " or ".join(allowed), "parse": parse}


def _policy(text: str) -> str:
    policies = sorted(part.strip() for part in text.split(","))
    if "dedupe" in policies:
        raise ValueError("use compact: the first Kafka with a cleaner called it dedupe")
    if policies not in (["compact"], ["delete"], ["compact", "delete"]):
        raise ValueError(f"{text!r} is not an accepted value")
    return ",".join(policies)


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


def _groups(text: str) -> str:
    names = dict.fromkeys(part.strip() for part in text.split(",") if part.strip())
    if len(names) > MAX_GROUPS:
        raise ValueError(f"{len(names)} are too many")
    try:
        return ",".join(map(checked_group, names))
    except InvalidNameError as error:
        raise ValueError(error.message) from None


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it is not UTF-8 text") from None
    return text


def _ratio(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        raise ValueError("write 1% as 0.01" if text.rstrip().endswith("%") else "it is not a number") from None
    if not 0 <= ratio <= 1:
        raise ValueError(f"{ratio} is out of range")
    return ratio


_TABLE = (
    Setting(
        "compaction.mode",
        doc="In place: the compacted log replaces the log. Side by side: the full log remains beside a compacted view.",
        **_choice("in-place", "side-by-side"),
    ),
    Setting(
        "cleanup.policy",
        accepts="compact or delete or compact,delete",
        doc="What happens to old records: compact retains the latest of every key, delete removes by age and size.",
        parse=_policy,
    ),
    Setting(
        "compaction.strategy",
        doc="Which record of a key wins: the one with the highest offset, timestamp, or order in a header.",
        **_choice(*get_args(Strategy)),
    ),
    Setting(
        "compaction.strategy.header",
        accepts="the name of a header",
        doc="With strategy header: the header that has the order of a record, a signed big-endian integer of 8 bytes.",
        parse=_text,
    ),
    Setting(
        "null.key",
        doc="Records without a key are refused at the append, removed by the next round, or retained.",
        **_choice("reject", "drop", "retain"),
    ),
    Setting(
        "empty.value",
        doc="A value of zero bytes is a value, or it deletes its key as null does.",
        **_choice("value", "tombstone"),
    ),
    Setting(
        "delete.retention.ms",
        doc="How long a tombstone remains readable after the first round that covered it.",
        **_duration(),
    ),
    Setting(
        "tombstone.hold.groups",
        accepts=f"names of consumer groups, separated by commas, {MAX_GROUPS} at most",
        doc="Rounds remove a tombstone only after all of these consumer groups have read past it.",
        parse=_groups,
    ),
    Setting(
        "tombstone.hold.max.ms",
        doc="How long groups hold a tombstone at most, counted from the first round that covered it.",
        **_duration(NO_LIMIT),
    ),
    Setting(
        "backlog.trim.groups",
        accepts=f"names of consumer groups, separated by commas, {MAX_GROUPS} at most",
        doc="Side by side: segments in the compacted view leave the full log once all of these groups have read them.",
        parse=_groups,
    ),
    Setting(
        "min.cleanable.dirty.ratio",
        accepts="a number from 0 to 1",
        doc="A log is due when more than this share of its bytes is dirty.",
        parse=_ratio,
    ),
    Setting(
        "min.compaction.lag.ms",
        doc="Rounds do not compact records younger than this.",
        **_duration(),
    ),
    Setting(
        "min.compaction.lag.from",
        doc="min.compaction.lag.ms counts from a record's timestamp, or from the later of timestamp and commit.",
        **_choice("timestamp", "commit"),
    ),
    Setting(
        "min.compaction.lag.bytes",
        doc="Rounds do not compact this many of the newest bytes of a log.",
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
    Setting("retention.ms", doc="With policy delete: the maximum age of records.", **_duration(NO_LIMIT)),
    Setting("retention.bytes", doc="With policy delete: the maximum size of a log.", **_size(NO_LIMIT)),
    Setting("segment.bytes", doc="Size of a new segment, compressed.", **_size(1024)),
    Setting(
        "segment.max.dead.ratio",
        accepts="a number from 0 to 1",
        doc="A round hides up to this share of a segment's records by a mask. With more, it rewrites the segment.",
        parse=_ratio,
    ),
    Setting(
        "key.index.enable",
        doc="New segments get an index of their keys, some 7 bytes for each key.",
        **_choice("true", "false"),
    ),
    Setting(
        "compression.type",
        doc="Codec of new segments.",
        **_choice("zstd", "snappy", "gzip", "lz4", "none"),
    ),
    Setting(
        "message.timestamp.type",
        doc="The timestamp of a record is the producer's, or the time of the append.",
        **_choice("CreateTime", "LogAppendTime"),
    ),
    Setting(
        "message.timestamp.after.max.ms",
        doc="An append refuses a record further in the future than this.",
        **_duration(),
    ),
    Setting(
        "message.ids",
        doc="Whether records have Pulsar's message ids, as copies of Pulsar topics do. Set at creation.",
        **_choice("none", "pulsar"),
    ),
    Setting("max.message.bytes", doc="An append refuses a larger record.", **_size(1)),
    Setting(
        "versions.retention.ms",
        doc="How long the files of a version remain after a commit stopped naming them.",
        **_duration(),
    ),
    Setting(
        "versions.kept",
        doc="How many versions from before a round are retained at most, for `versions`, `undo` and `verify`.",
        **_number(int, "a number", 1),
    ),
    Setting(
        "sweep.grace.ms",
        doc="The minimum age at which sweep deletes a file that no version ever named.",
        **_duration(LEAST_SWEEP_GRACE_MS),
    ),
)

SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _TABLE}
