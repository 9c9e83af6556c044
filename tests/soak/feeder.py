"""Feeds the topics of a soak, and keeps the journal of what was acknowledged.

    thread 1   topics 1, 4, 7 ...    append, append, delete-records, append, alter, read on ...
    thread 2   topics 2, 5, 8 ...

A topic is fed by one thread alone, so an append whose outcome is unknown is settled by its log ends.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from threading import Event

from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.errors import (
    ConflictError,
    LithifyError,
    NothingToUndoError,
    OffsetOutOfRangeError,
    PolicyError,
    WarehouseError,
)
from lithify.model.record import Record
from lithify.model.settings.topic_settings import changed
from lithify.service.write.append import OffsetRange
from soak.follower import Follower, followers_of
from soak.journal import TopicJournal, at
from soak.outages import Outages
from soak.topics import DAY_MS, MOST_PARTITIONS, Draw, Sizes, Style, drawn_batch, drawn_topic

OUT_S = 60.0
"""The longest outage."""
FOLLOWED = 0.12
"""The share of topics that readers follow."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A topic was deleted in this time, and recreated."""

    topic: str
    begun_ms: int
    ended_ms: int


@dataclass(slots=True)
class Counts:
    """What was done to all topics."""

    records: int = 0
    verbs: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[str] = field(default_factory=Counter)
    settled: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    """Appends that failed in an outage."""
    deletions: list[Deletion] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class FedTopic:
    """One topic with its journal."""

    lake: Lake
    name: str
    luck: Random
    sizes: Sizes
    counts: Counts
    grouped: bool = False
    """Whether a consumer group reads it."""
    journal: TopicJournal = field(init=False)
    style: Style = field(init=False)
    topic: Topic = field(init=False)
    followers: list[Follower] = field(default_factory=list)
    past_followers: list[Follower] = field(default_factory=list)

    def create(self) -> None:
        draw = drawn_topic(self.luck, self.sizes, grouped=self.grouped)
        self._made(draw, self.lake.create_topic(self.name, draw.partitions, config=draw.config))

    def _made(self, draw: Draw, topic: Topic) -> None:
        self.topic, self.style = topic, draw.style
        self.journal = TopicJournal.of(draw.settings, draw.partitions)
        self.followers = self.followed()

    def followed(self) -> list[Follower]:
        """Readers that follow it, if it has some."""
        return list(followers_of(self.topic, self.journal)) if self.luck.random() < FOLLOWED else []

    def write(self, batch: Sequence[Record], *, keeps: bool) -> Sequence[OffsetRange]:
        """Appends, and returns where the records are."""
        return self.topic.append(batch, keep_offsets=keeps).ranges

    def turn(self) -> None:
        """One thing, mostly an append."""
        verb = self.luck.choices(list(VERBS), [weight for _, weight in VERBS.values()])[0]
        self.counts.verbs[verb] += 1
        try:
            VERBS[verb][0](self)
        except (PolicyError, NothingToUndoError, OffsetOutOfRangeError):
            self.counts.refused[verb] += 1  # rounds and retention have moved D and S to where they forbid it
        except ConflictError:
            self.counts.conflicts[verb] += 1
        for follower in self.followers:
            if self.luck.random() < 0.5:
                follower.poll()

    def append(self, *, calm: bool = True) -> None:
        """While it is not calm it may fail; whether it did is told by the log ends, once they can be read."""
        journal, now_ms = self.journal, time.time_ns() // 10**6
        batch = drawn_batch(self.luck, journal.settings, self.style, len(journal.logs), now_ms)
        keeps = self.luck.random() < 0.1
        if keeps:
            batch = self._with_offsets(batch)
        placed = journal.placed(batch)
        try:
            ranges = self.write(batch, keeps=keeps)
        except LithifyError as error:
            landed = self._landed(placed) if calm else self._landed_at_last(placed)
            if not landed and calm:
                raise
            (self.counts.settled if landed else self.counts.lost)[type(error).__name__] += 1
            if not landed:
                return
        else:
            wanted = [(p, at(rs[0]), at(rs[-1]) + 1, len(rs)) for p, rs in sorted(placed.items())]
            got = [(r.partition, r.start_offset, r.end_offset, r.records) for r in ranges]
            if got != wanted:
                self.counts.findings.append(f"{self.name}: an append got {got}, not {wanted}")
        for partition, records in placed.items():
            journal.logs[partition].append(records)
        self.counts.records += len(batch)

    def _with_offsets(self, batch: list[Record]) -> list[Record]:
        """With offsets of their own, and gaps between them (C2)."""
        ends = {log.partition: log.end for log in self.journal.logs}
        given = []
        for record in batch:
            assert record.partition is not None
            offset = ends[record.partition] + self.luck.choice([0, 0, 0, 3])
            ends[record.partition] = offset + 1
            given.append(record._replace(offset=offset))
        return given

    def _landed(self, placed: Mapping[int, list[Record]]) -> bool:
        state = self.topic.state()
        ends = {state.log(p).log_end_offset - self.journal.logs[p].end for p in placed}
        return all(end > 0 for end in ends)

    def _landed_at_last(self, placed: Mapping[int, list[Record]]) -> bool:
        until_s = time.monotonic() + OUT_S
        while True:
            try:
                return self._landed(placed)
            except LithifyError:
                if time.monotonic() > until_s:
                    raise
                time.sleep(0.5)

    def delete_records(self) -> None:
        log = self.luck.choice(self.journal.logs)
        if self.journal.settings.compaction_strategy != "offset" or log.end <= log.deleted_below:
            return  # with others, what is cut away may have beaten something or not
        before = self.luck.randint(log.deleted_below, (log.deleted_below + log.end) // 2)
        self.topic.delete_records(log.partition, before)
        log.deleted_below = max(before, log.deleted_below)

    def truncate(self) -> None:
        log, settings = self.luck.choice(self.journal.logs), self.journal.settings
        to = max(log.deleted_below, log.end - self.luck.randint(1, 20))
        if to >= log.end:
            return
        # A backlog that is whole has the values still that had been superseded.
        trims = settings.deletes or settings.trimming_groups
        whole = settings.side_by_side and not trims and to >= log.whole_from
        self.topic.truncate(log.partition, to, below_compacted=whole)
        log.truncate(to)

    def undo(self) -> None:
        settings = self.journal.settings
        if settings.side_by_side and (settings.deletes or settings.trimming_groups):
            return  # what was trimmed since the round is in no view then
        self.topic.undo()

    def uncompact(self) -> None:
        settings = self.journal.settings
        if settings.side_by_side and not settings.deletes and not settings.trimming_groups:
            self.topic.uncompact()

    def alter(self) -> None:
        settings, luck = self.journal.settings, self.luck
        changes: list[dict[str, object]] = [
            {"min.cleanable.dirty.ratio": luck.choice([0, 0.1, 0.3, 0.5])},
            {"min.compaction.lag.ms": luck.choice([0, 2_000])},
            {"versions.kept": luck.choice([2, 5, 20])},
            {"compression.type": luck.choice(["zstd", "snappy", "none"])},
        ]
        if settings.delete_retention_ms < DAY_MS:
            changes.append({"delete.retention.ms": luck.choice([0, 2_000])})
        if settings.compacts and settings.empty_value == "value":
            changes.append({"empty.value": "tombstone"})
        if settings.compacts and settings.null_key == "retain":
            changes.append({"null.key": "drop"})
        if not settings.compacts and settings.retention_ms == settings.retention_bytes == -1:
            changes.append({"cleanup.policy": "compact"})
        if settings.cleanup_policy == "compact" and not settings.side_by_side:
            changes.append({"compaction.mode": "side-by-side"})
        config = luck.choice(changes)
        self.topic.alter(config)
        self.journal.settings = changed(settings, config)
        if config.get("compaction.mode"):
            for log in self.journal.logs:
                log.whole_from = log.end

    def add_partition(self) -> None:
        partitions = len(self.journal.logs) + 1
        if partitions > MOST_PARTITIONS:
            return
        self.topic.alter(partitions=partitions)
        self.journal.logs += TopicJournal.of(self.journal.settings, partitions).logs[-1:]

    def make_again(self) -> None:
        begun_ms = time.time_ns() // 10**6
        self.lake.delete_topic(self.name)
        self.past_followers += self.followers
        self.create()
        self.counts.deletions.append(Deletion(self.name, begun_ms, time.time_ns() // 10**6))

    def release_all(self) -> None:
        """So that everything becomes due (C28, C43). It tries again while the store is away, as an outage may last."""
        config = {
            "min.cleanable.dirty.ratio": 0,
            "min.compaction.lag.bytes": 0,
            "max.compaction.lag.ms": -1,
            "min.compaction.lag.ms": 0,
        }
        until_s = time.monotonic() + OUT_S
        while True:
            try:
                self.topic.alter(config)
                break
            except WarehouseError:
                if time.monotonic() > until_s:
                    raise
        self.journal.settings = changed(self.journal.settings, config)


VERBS: Mapping[str, tuple[Callable[[FedTopic], None], float]] = {
    "append": (FedTopic.append, 85),
    "delete-records": (FedTopic.delete_records, 3),
    "truncate": (FedTopic.truncate, 2.5),
    "undo": (FedTopic.undo, 1.5),
    "uncompact": (FedTopic.uncompact, 1),
    "alter": (FedTopic.alter, 5),
    "alter --partitions": (FedTopic.add_partition, 1),
    "delete and make again": (FedTopic.make_again, 0.6),
}
"""What may be done to a topic, and how often."""


@dataclass(slots=True)
class Feeder:
    """One thread and its topics, at so many turns per second."""

    topics: list[FedTopic]
    luck: Random
    counts: Counts
    turns_per_s: float
    outages: Outages
    stop: Event

    def run(self) -> None:
        """Until it is asked to stop. What goes wrong is a finding, and ends it."""
        weights = [1 / (1 + place) ** 0.5 for place in range(len(self.topics))]
        next_s = time.monotonic()
        topic = self.topics[0]
        try:
            while not self.stop.is_set():
                topic = self.luck.choices(self.topics, weights)[0]
                with self.outages.turn() as calm:
                    if calm:
                        topic.turn()
                    else:
                        topic.append(calm=False)
                next_s = max(next_s + 1 / self.turns_per_s, time.monotonic() - 5)
                self.stop.wait(max(0.0, next_s - time.monotonic()))
        except Exception as error:
            self.counts.findings.append(f"{topic.name}: feeding failed: {type(error).__name__}: {error}")
            self.stop.set()
