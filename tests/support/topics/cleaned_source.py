"""A compacted topic of Kafka in plain Python, with its log cleaner, as the source of an ingest (C71).

    append ─► clean: losers go, a tombstone that is covered for the first time gets its time ─► clean, later: it goes

Whatever a test likes happens between any two records that a batch reads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lithify.errors import LithifyError
from lithify.model.names import LogId
from lithify.model.record import Record
from lithify.model.sources.ends import StableEnds
from lithify.model.sources.source import SourceLog, SourceTopic
from lithify.model.staged import StagedLog
from lithify.model.topic.state import TopicState
from lithify.ports.source import Copying, CopyKeys, OnBatch
from lithify.ports.store import Warehouse
from lithify.reports.ingest import IngestedLog
from lithify.rules.lifecycle.copies.copy_continuation import CopyContinuation, copy_continuations
from lithify.rules.lifecycle.copies.missed_deletes import no_room
from lithify.service.read.fetch import table_batches
from support.topics.listed_source import ListedStream


@dataclass(frozen=True, slots=True)
class Kept:
    """A record that the log still has, and when a round covered it first."""

    offset: int
    key: bytes
    value: bytes | None
    covered_ms: int | None = None


@dataclass(slots=True)
class CleanedLog:
    """One log. `table` is what its whole history makes, whatever was cleaned."""

    retention_ms: int
    end: int = 0
    start: int = 0
    policy: str | None = "compact"
    kept: list[Kept] = field(default_factory=list)
    table: dict[bytes, bytes] = field(default_factory=dict)

    def append(self, key: bytes, value: bytes | None) -> None:
        self.kept.append(Kept(self.end, key, value))
        self.end += 1
        if value is None:
            self.table.pop(key, None)
        else:
            self.table[key] = value

    def clean(self, below: int, now_ms: int) -> None:
        """A round of the cleaner over what is below that offset."""
        newest = {record.key: record.offset for record in self.kept if record.offset < below}
        self.kept = [after for record in self.kept if (after := self._cleaned(record, newest, below, now_ms))]

    def expire(self, below: int) -> None:
        """What retention and `delete-records` do: records go, and nobody has deleted their keys."""
        self.start = max(self.start, below)
        self.kept = [record for record in self.kept if record.offset >= self.start]

    def _cleaned(self, record: Kept, newest: Mapping[bytes, int], below: int, now_ms: int) -> Kept | None:
        if record.offset >= below:
            return record
        if newest[record.key] != record.offset:
            return None
        if record.value is not None:
            return record
        if record.covered_ms is None:
            return replace(record, covered_ms=now_ms)
        return record if now_ms < record.covered_ms + self.retention_ms else None


@dataclass(slots=True)
class CleanedSource:
    """A topic of one log. `meanwhile` is called between any two calls and records; `limit` is of a batch's offsets."""

    warehouse: Warehouse
    log: CleanedLog
    meanwhile: Callable[[], None] = lambda: None
    limit: int = 2**31
    system: str = "Kafka"
    where: str = "a list"
    look_interval_ms: int = 0
    is_silent: bool = False

    @property
    def drops(self) -> CleanedSource:
        return self

    def topics(self, pattern: str) -> tuple[str, ...]:
        raise NotImplementedError(pattern)

    def topic(self, name: str) -> SourceTopic:
        self.meanwhile()
        return SourceTopic(name, "1", (0,))

    def logs(self) -> Mapping[int, SourceLog]:
        self.meanwhile()
        return {0: SourceLog(0, self.log.start, self.log.end)}

    def continuations(self, topic: SourceTopic, copy: TopicState) -> Mapping[int, CopyContinuation]:
        return copy_continuations(copy, self.logs())

    def after_read(
        self, topic: SourceTopic, copy: TopicState, partitions: Collection[int]
    ) -> Mapping[int, CopyContinuation]:
        return {}

    def epochs(self, topic: SourceTopic) -> Mapping[int, int | None]:
        return {0: None}

    def stable_ends(self, topic: SourceTopic) -> StableEnds:
        self.meanwhile()
        found = StableEnds({0: self.log.start}, {0: self.log.end}, self.log.retention_ms, self.log.policy)
        self.meanwhile()  # on the way back
        return found

    def resync(
        self, topic: SourceTopic, starts: Mapping[int, int], ends: Mapping[int, int], keys: CopyKeys
    ) -> CleanedResync:
        return CleanedResync(self, starts[0], ends[0])

    def progress(self, topic: SourceTopic, copy: TopicState, records: Mapping[int, int]) -> tuple[IngestedLog, ...]:
        return (IngestedLog(0, copy.log(0).log_end_offset, self.log.end, records.get(0, 0)),)

    def own_config(self, topic: str) -> None:
        """Not known."""

    def settings(self, topic: str, config: Mapping[str, object]) -> Mapping[str, object]:
        return config

    def stream(self, topic: str, starts: Mapping[int, int], run_id: str, on_batch: OnBatch) -> ListedStream:
        self.meanwhile()
        stream, at, end = ListedStream(), starts[0], self.log.end
        try:
            while at < end:
                to = min(end, at + self.limit)
                on_batch(CleanedBatch(self, at, to))
                at = to
        except LithifyError as error:
            stream.failure = error
        return stream

    def read(self, start: int, end: int) -> list[Record]:
        """What is there in [start, end) when it comes to it."""
        found: list[Record] = []
        at = start
        while (record := next((r for r in self.log.kept if at <= r.offset < end), None)) is not None:
            found.append(Record(record.key, record.value, 1_000, partition=0, offset=record.offset))
            at = record.offset + 1
            self.meanwhile()
        return found


@dataclass(frozen=True, slots=True)
class CleanedBatch:
    """The records of [start, end)."""

    source: CleanedSource
    start: int
    to: int

    def damaged(self) -> Mapping[int, tuple[int, Sequence[str]]]:
        return {}

    def copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        return staged(self.source.warehouse, copying, self.source.read(self.start, self.to))

    def ends(self) -> Mapping[int, int]:
        return {0: self.to}


@dataclass(slots=True)
class CleanedResync:
    """The same, with deletes of the keys that only the copy has."""

    source: CleanedSource
    start: int
    to: int
    deleted: dict[int, int] = field(default_factory=dict)

    def copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        source, name = self.source, copying.topic.name
        warehouse = source.warehouse
        records = source.read(self.start, self.to)
        source.meanwhile()
        theirs = {record.key for record in source.read(0, self.to)}
        live = [r for batch in table_batches(warehouse, warehouse.store.load(name)) for r in batch.records()]
        gone = [record for record in live if record.key not in theirs]
        free = [n for n in range(self.start, self.to) if n not in {record.offset for record in records}]
        if len(gone) > len(free):
            raise no_room(LogId(name, 0), len(gone), len(free), (self.start, self.to))
        deletes = [
            Record(record.key, None, record.timestamp, partition=0, offset=n)
            for record, n in zip(gone, free, strict=False)
        ]
        self.deleted = {0: len(deletes)}
        return staged(warehouse, copying, sorted(records + deletes, key=lambda record: record.offset or 0))

    def ends(self) -> Mapping[int, int]:
        return {0: self.to}

    def damaged(self) -> Mapping[int, tuple[int, list[str]]]:
        return {}


def staged(warehouse: Warehouse, copying: Copying, records: list[Record]) -> tuple[StagedLog, ...]:
    """What a task writes of these records."""
    name = copying.topic.name
    state = warehouse.store.load(name)
    arrived = warehouse.files.receive(state, records, now_ms=0, keep_offsets=True)
    return tuple(
        StagedLog(name, state.identity, p, warehouse.files.write(state, a, 0, copying.run_id), a.last_timestamp_ms)
        for p, a in sorted(arrived.items())
    )
