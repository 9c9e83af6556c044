"""One producer at the target, which publishes versions of a topic one after the other.

    open ─► earlier runs fenced, target checked ─► publish a version ─► publish the next one ─► close
            progress of every partition loaded     from the progress on

What a session has committed is in `published`, even if it ends in an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from lithify.errors import InvalidRecordError, RefusedError, UnknownSourceError
from lithify.kafka.publisher.offset_map import OffsetMap
from lithify.kafka.publisher.reports import PublishedLog
from lithify.kafka.publisher.target import (
    Source,
    Target,
    Wanted,
    check_only_ours,
    find_or_make,
    largest_batch,
    partitions_of,
)
from lithify.kafka.publisher.transactions import Stored, Transactions
from lithify.kafka_client.client import Cluster
from lithify.model.cursor import Cursor
from lithify.model.names import LogId
from lithify.model.record import Record, payload_bytes
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.reading.continuation import Continues, advanced, continuation, lost_error
from lithify.service.documents import source_of
from lithify.service.snapshot.consumer_narration import FollowedLog
from lithify.service.snapshot.cursors import compacted_records, copied_from, first_cursor, log_of

TRANSACTION_RECORDS = 50_000
TRANSACTION_BYTES = 64 * 1024 * 1024
TRANSACTION_MS = 30_000
"""A transaction ends at the first of these limits, long before the cluster would abort it."""
PIECE_RECORDS = 1_000
PIECE_BYTES = 1024 * 1024
"""Records that are sent without a check of the limits of bytes and time, and of `stops`."""

Published = dict[int, PublishedLog]


@dataclass(slots=True)
class Session:
    """Made by `open_session`. `stored` is the progress by partition, of this session and of earlier ones.

    `state` is the version to begin with, `exact_at` are offsets by partition, of positions that are to be translated.
    """

    warehouse: Warehouse
    cluster: Cluster
    transactions: Transactions
    target: Target
    state: TopicState
    stored: dict[int, Stored]
    published: Published
    exact_at: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def publish(self, state: TopicState, tell: Callable[[int], None]) -> None:
        """Publishes a version, or up to the transaction that is under way at the cluster's `stops()`.

        `tell` gets the records of every transaction. Raises `LogTruncatedError` if it cannot continue in this
        version.
        """
        for partition, progress in self.stored.items():
            _check_continues(progress.cursor, state, partition)
        for partition in state.partitions:
            if self.cluster.stops():
                return
            self._publish(state, partition, tell)

    def progress(self, state: TopicState) -> tuple[FollowedLog, ...]:
        """How far it is in that version."""
        return tuple(
            FollowedLog(p, self._next(state, p).cursor.offset, state.log(p).log_end_offset) for p in state.partitions
        )

    def close(self) -> None:
        self.transactions.close()

    def _next(self, state: TopicState, partition: int) -> Stored:
        return self.stored.get(partition) or Stored(first_cursor(state, partition), OffsetMap())

    def _publish(self, state: TopicState, partition: int, tell: Callable[[int], None]) -> None:
        log, clock = state.log(partition), self.warehouse.clock
        at = self._next(state, partition)
        self.published.setdefault(partition, PublishedLog(partition, at.cursor.offset, at.cursor.offset, 0))
        begun_ms = clock.monotonic_ms()
        for records, size_bytes in self._pieces(compacted_records(self.warehouse, state, partition, at.cursor.offset)):
            self._check(LogId(state.name, partition), records)
            self.transactions.send(records, size_bytes)
            if self._is_full(begun_ms):
                at, brought = self._commit(state, partition, at, (records[-1].offset or 0) + 1)
                tell(brought)
                begun_ms = clock.monotonic_ms()
                if self.cluster.stops():
                    return
        if self.transactions.records or at.cursor.offset < log.log_end_offset:
            at, brought = self._commit(state, partition, at, log.log_end_offset)
            tell(brought)
        if partition in self.stored:  # of this version, also if that had nothing new
            self.stored[partition] = replace(at, cursor=advanced(at.cursor, log, state.version, at.cursor.offset))

    def _pieces(self, batches: Iterable[Sequence[Record]]) -> Iterator[tuple[Sequence[Record], int]]:
        """The same records in small sequences, each with its size in bytes, none of more than the transaction takes."""
        for batch in batches:
            begin = 0
            while begin < len(batch):
                end = begin + min(PIECE_RECORDS, TRANSACTION_RECORDS - self.transactions.records)
                piece = small(batch[begin:end])
                yield piece
                begin += len(piece[0])

    def _check(self, log: LogId, records: Sequence[Record]) -> None:
        for record in records:
            if not record.timestamp or record.headers or record.key is None:  # most records cannot be refused
                self._check_one(log, record)

    def _check_one(self, log: LogId, record: Record) -> None:
        if record.timestamp == 0:
            raise _without_time(log, record.offset or 0)
        if any("\0" in name for name, _ in record.headers):
            raise InvalidRecordError(
                f"{log}: the record at offset {record.offset} has a header whose name has a NUL, where Kafka's client "
                "for Python would end the name",
                hint="this record cannot be published with its headers",
            )
        if record.key is None and self.target.compacts:
            raise InvalidRecordError(
                f"{log}: the record at offset {record.offset} has no key, which a compacted topic requires",
                hint="publish into a topic with cleanup.policy=delete and retention.ms=-1",
            )

    def _commit(self, state: TopicState, partition: int, at: Stored, offset: int) -> tuple[Stored, int]:
        """Returns the progress, and how many records the transaction had."""
        reached = replace(at, cursor=advanced(at.cursor, state.log(partition), state.version, offset))
        brought = self.transactions.records
        self.stored[partition] = self.transactions.commit(partition, reached, self.exact_at.get(partition, ()))
        before = self.published[partition]
        self.published[partition] = replace(before, end_offset=offset, records=before.records + brought)
        return self.stored[partition], brought

    def _is_full(self, begun_ms: int) -> bool:
        return (
            self.transactions.records >= TRANSACTION_RECORDS
            or self.transactions.bytes >= TRANSACTION_BYTES
            or self.warehouse.clock.monotonic_ms() - begun_ms >= TRANSACTION_MS
            or self.cluster.stops()
        )


def small(records: Sequence[Record]) -> tuple[Sequence[Record], int]:
    """The first of these records, of at most `PIECE_BYTES` unless it is a single one, and their size in bytes."""
    while (size_bytes := payload_bytes(records)) > PIECE_BYTES and len(records) > 1:
        records = records[: len(records) // 2]
    return records, size_bytes


def open_session(
    warehouse: Warehouse,
    cluster: Cluster,
    state: TopicState,
    wanted: Wanted,
    published: Published,
) -> Session:
    """Creates or checks the target, fences earlier runs and loads their progress. Raises what `publish` raises.

    It begins with `state`, or with the newest version where another run has gone on since that was loaded.
    """
    _check_timestamps(warehouse, state)
    to = wanted.to
    _check_not_source(warehouse, cluster, state, to)
    copied = source_of(warehouse.store, state)
    theirs = {} if copied is None else copied.config or {}
    target = find_or_make(cluster, wanted, len(state.partitions), Source(state.settings, theirs))
    transactions = Transactions(cluster, f"lithify.{state.identity}.{to}", to, largest_batch(state.settings))
    try:
        transactions.begin()
        everywhere = range(partitions_of(cluster, to))
        stored = transactions.stored(len(everywhere))
        state = _begun(stored, warehouse, state)
        ends: Mapping[int, int] = {p: stored[p].end if p in stored else 0 for p in everywhere}
        check_only_ours(cluster, to, ends, warehouse.clock)
    except BaseException:
        transactions.close()
        raise
    return Session(warehouse, cluster, transactions, target, state, stored, published)


def _begun(stored: Mapping[int, Stored], warehouse: Warehouse, state: TopicState) -> TopicState:
    """`state`, or the newest version where an earlier run has published a later one than that before it was fenced.

    A run of 0.2.0 or before does not say which it has published. Raises `LogTruncatedError` if this run cannot
    continue.
    """
    cursors = {partition: progress.cursor for partition, progress in stored.items()}
    if any(cursor.version is None or cursor.is_later_than(state.version) for cursor in cursors.values()):
        state = warehouse.store.load(state.name)
    for partition, cursor in cursors.items():
        _check_continues(cursor, state, partition)
    return state


def _check_continues(cursor: Cursor, state: TopicState, partition: int) -> None:
    match continuation(cursor, state, log_of(state, partition), compacted=True):
        case Continues():
            return
        case lost:
            log = LogId(state.name, partition)
            raise lost_error(log, cursor, lost, "publish into a topic that does not exist yet")


def _check_not_source(warehouse: Warehouse, cluster: Cluster, state: TopicState, to: str) -> None:
    """Raises `RefusedError` if the target is the very topic that this one is a copy of."""
    source_id = copied_from(warehouse, state, to)
    with suppress(UnknownSourceError):  # then it is created
        if source_id and cluster.topic_id(to) == source_id:
            raise RefusedError(
                f"{state.name} was copied from Kafka's {to} itself",
                hint="publish into another topic; Lithify creates a topic that does not exist",
            )


def _check_timestamps(warehouse: Warehouse, state: TopicState) -> None:
    """Raises `InvalidRecordError` before anything is sent if the oldest record of a segment has timestamp 0."""
    for segment in (*warehouse.store.segments(state), *warehouse.store.view(state)):
        if segment.min_timestamp_ms == 0:
            raise _without_time(LogId(state.name, segment.partition), segment.base_offset)


def _without_time(log: LogId, offset: int) -> InvalidRecordError:
    return InvalidRecordError(
        f"{log}: the record at or after offset {offset} has timestamp 0, which Kafka's client would replace by the "
        "current time",
        hint="this record cannot be published with its timestamp",
    )
