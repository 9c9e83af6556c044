"""What the topics of a soak are like: settings drawn at random, and records that fit them.

Everything is drawn so that what is left at the end does not depend on when rounds happen:

- old records are three days old and the limit of age is a day, so that nothing gets old meanwhile;
- where a late record could tell whether a tombstone is still there, tombstones stay for a day;
- with strategy `header` old records have lower orders than young ones where age matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings, settings_of

DAY_MS = 86_400_000
OLD_MS = 3 * DAY_MS
MOST_PARTITIONS = 4

GROUP = "slow"
"""The consumer group of topics that one reads."""
HELD = 0.7
"""The share of these whose tombstones wait for it (C61)."""
TRIMMED = 0.5
"""The share of these with a view whose backlog is trimmed behind it (C62)."""

ORDER_HEADER = "v"
KINDS = (
    ("in-place", "compact", 35),
    ("in-place", "compact,delete", 20),
    ("in-place", "delete", 12),
    ("side-by-side", "compact", 18),
    ("side-by-side", "compact,delete", 15),
)


@dataclass(frozen=True, slots=True)
class Style:
    """How the records of a topic are: how many keys, how large, and how large a share of batches is old."""

    keys: int
    value_bytes: int
    batch_records: int
    old_share: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Times that have to fit the length of a run: not shorter than a slow round needs."""

    versions_retention_ms: int
    sweep_grace_ms: int


@dataclass(frozen=True, slots=True)
class Draw:
    """A topic that is to be made."""

    config: Mapping[str, object]
    partitions: int
    style: Style

    @property
    def settings(self) -> TopicSettings:
        return settings_of(self.config)


def drawn_topic(luck: Random, sizes: Sizes, *, grouped: bool = False) -> Draw:
    """Any policy, mode and strategy; for one that a group reads, those with which its fold is the oracle's word."""
    kinds = [kind for kind in KINDS if kind[1] == "compact" or not grouped]
    mode, policy, _ = luck.choices(kinds, [weight for _, _, weight in kinds])[0]
    strategy = "offset" if policy == "delete" or grouped else luck.choice(["offset", "offset", "timestamp", "header"])
    config: dict[str, object] = {
        "compaction.mode": mode,
        "cleanup.policy": policy,
        "compaction.strategy": strategy,
        "compaction.strategy.header": ORDER_HEADER,
        "null.key": luck.choice(["reject", "drop", "retain"]),
        "empty.value": luck.choice(["value", "tombstone"]),
        "delete.retention.ms": luck.choice([0, 2_000, DAY_MS]) if strategy == "offset" else DAY_MS,
        "min.cleanable.dirty.ratio": luck.choice([0, 0.1, 0.3, 0.5]),
        "min.compaction.lag.ms": luck.choice([0, 0, 2_000]),
        "min.compaction.lag.bytes": luck.choice([0, 0, 0, 10_000]),
        "compaction.threshold.bytes": luck.choice([-1, -1, 20_000]),
        "compression.type": luck.choice(["zstd", "snappy", "gzip", "lz4", "none"]),
        "versions.kept": luck.choice([2, 5, 20]),
        "versions.retention.ms": luck.choice([sizes.versions_retention_ms, DAY_MS]),
        "sweep.grace.ms": luck.choice([sizes.sweep_grace_ms, DAY_MS, DAY_MS, DAY_MS]),
        "retention.ms": -1,
    }
    old_share = luck.choice([0, 0.3])
    if "delete" in policy and luck.random() < 0.7:
        config["retention.ms"], old_share = DAY_MS, 0.5
    elif policy == "delete" and luck.random() < 0.5:
        config["retention.bytes"] = 20_000
    if policy != "delete" and old_share == 0 and luck.random() < 0.6:
        config["max.compaction.lag.ms"] = 20_000
    if grouped and luck.random() < HELD:
        config |= {"tombstone.hold.groups": GROUP, "tombstone.hold.max.ms": DAY_MS}
        config["delete.retention.ms"] = luck.choice([0, 2_000])
    if grouped and mode == "side-by-side" and luck.random() < TRIMMED:
        config["backlog.trim.groups"] = GROUP
    if mode == "in-place" and policy != "delete":  # elsewhere batches have to stay whole segments
        config["segment.bytes"] = luck.choice([4_096, 40_000, 128 * 2**20])
    style = Style(
        keys=luck.choice([5, 50, 500]),
        value_bytes=luck.choice([20, 200, 2_000]),
        batch_records=luck.choice([20, 100, 200]),
        old_share=old_share,
    )
    return Draw(config, luck.randint(1, 3), style)


def drawn_batch(luck: Random, settings: TopicSettings, style: Style, partitions: int, now_ms: int) -> list[Record]:
    """Records for one append: all of them young, all of them old, or both."""
    age = "young"
    if luck.random() < style.old_share:
        age = luck.choice(["old", "old", "mixed"])
    mine = luck.sample(range(partitions), luck.randint(1, partitions))
    return [
        _drawn_record(luck, settings, style, luck.choice(mine), now_ms, luck.choice(["young", "old"]), age)
        for _ in range(luck.randint(1, style.batch_records))
    ]


def _drawn_record(
    luck: Random, settings: TopicSettings, style: Style, partition: int, now_ms: int, either: str, age: str
) -> Record:
    old = (either if age == "mixed" else age) == "old"
    timestamp = now_ms - luck.randint(0, 1_000) - (OLD_MS if old else 0)
    key: bytes | None = b"" if luck.random() < 0.01 else b"k%d\x00\xff" % luck.randrange(style.keys)
    if (settings.null_key != "reject" or not settings.compacts) and luck.random() < 0.05:
        key = None
    chance = luck.random()
    value = None if chance < 0.1 else b"" if chance < 0.15 else luck.randbytes(luck.randint(1, style.value_bytes))
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if luck.random() < 0.1:
        headers = (("trace", luck.choice([None, b"", b"\x00\x01"])),)
    if settings.compaction_strategy == "header":
        headers += _order(luck, old=old, always=settings.deletes)
    return Record(key, value, timestamp, headers, partition)


def _order(luck: Random, *, old: bool, always: bool) -> tuple[tuple[str, bytes | None], ...]:
    """The header that decides; sometimes none, or one that is not 8 bytes long, where age cannot matter."""
    number = luck.randint(-1_000, -1) if old else luck.randint(0, 1_000)
    chance = 1.0 if always else luck.random()
    if chance < 0.05:
        return ()
    return ((ORDER_HEADER, b"short" if chance < 0.1 else number.to_bytes(8, "big", signed=True)),)
