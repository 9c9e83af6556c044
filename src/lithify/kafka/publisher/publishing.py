"""Publishes a compacted topic into a Kafka topic, unchanged, each record exactly once (C1).

    lake   records ──► transaction: records + cursor ──► Kafka
                            becomes visible as a whole, or not at all

The transaction with the records also stores the cursor, as the offset of a consumer group for this topic and
this target: a run after a crash continues there, and the target holds only the records. Before that the run
checks that the target has no other records after the last published one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from lithify.errors import InvalidRecordError
from lithify.kafka.publisher.target import check_only_ours, find_or_make, largest_batch, partitions_of
from lithify.kafka.publisher.transactions import Stored, Transactions
from lithify.kafka_client.client import Cluster
from lithify.model.cursor import Cursor
from lithify.model.names import LogId
from lithify.model.record import Record
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.reading.continuation import Continues, advanced, continuation, lost_error
from lithify.snapshot.cursors import compacted_records, first_cursor, log_of

if TYPE_CHECKING:
    from lithify.api.topic import Topic

TRANSACTION_RECORDS = 50_000
TRANSACTION_BYTES = 64 * 1024 * 1024
TRANSACTION_MS = 30_000
"""A transaction ends at the first of these limits, long before the cluster would abort it."""


@dataclass(frozen=True, slots=True)
class PublishedLog:
    """One partition: this run published the lake's records at offsets [start_offset, end_offset)."""

    partition: int
    start_offset: int
    end_offset: int
    records: int


@dataclass(frozen=True, slots=True)
class PublishReport:
    """The result of `publish`. `created`: it created the target; `resumed`: it continued an earlier run."""

    topic: str
    version: int
    to: str
    created: bool
    resumed: bool
    logs: tuple[PublishedLog, ...]
    duration_ms: int

    @property
    def records(self) -> int:
        return sum(log.records for log in self.logs)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "records": self.records}


def publish(
    topic: Topic,
    conf: Mapping[str, Any],
    to: str,
    *,
    timeout_s: float = 30.0,
    tell: Callable[[int], None] = lambda _records: None,
) -> PublishReport:
    """Publishes the newest version of `topic`, its compacted view if it has one, into the Kafka topic `to`.

    Same partition, key, value, timestamp and headers, in order; offsets are the target's own. A missing
    target is created. Call it again after a crash, or for new records: it continues after the last one.
    `conf` is by Java's names, or librdkafka's, with `bootstrap.servers`; `tell` gets the records of every transaction.

    Raises `RefusedError` for a target that cannot take the records as they are or holds others,
    `InvalidRecordError` for a record that Kafka cannot take, `LogTruncatedError` where it cannot
    continue what is in the target, `ConflictError` if another run publishes the same, `BrokerError` and
    `ConnectorError`.
    """
    warehouse = topic.warehouse
    begun_ms = warehouse.clock.monotonic_ms()
    state = warehouse.store.load(topic.topic_name)
    _check_timestamps(warehouse, state)
    cluster = Cluster(conf, timeout_s)
    settings, partitions = state.settings, state.partitions
    target = find_or_make(cluster, to, len(partitions), settings)
    owner = f"lithify.{state.identity}.{to}"
    transactions = Transactions(cluster, owner, to, largest_batch(settings))
    try:
        transactions.begin()
        everywhere = range(partitions_of(cluster, to))
        stored = transactions.stored(len(everywhere))
        for partition, found in stored.items():
            _check_continues(found.cursor, state, partition)
        ends = {p: stored[p].end if p in stored else 0 for p in everywhere}
        check_only_ours(cluster, to, ends, warehouse.clock)
        work = _Publishing(warehouse, state, transactions, target.compacts, tell)
        logs = tuple(work.publish(partition, stored.get(partition)) for partition in partitions)
    finally:
        transactions.close()
    duration_ms = warehouse.clock.monotonic_ms() - begun_ms
    return PublishReport(topic.name, state.version, to, target.created, bool(stored), logs, duration_ms)


@dataclass(frozen=True, slots=True)
class _Publishing:
    """The publishing of one version."""

    warehouse: Warehouse
    state: TopicState
    transactions: Transactions
    wants_keys: bool
    tell: Callable[[int], None]

    def publish(self, partition: int, stored: Stored | None) -> PublishedLog:
        """Publishes one log, from the stored cursor on."""
        log, clock = self.state.log(partition), self.warehouse.clock
        first = first_cursor(self.state, partition)
        cursor, end = (first, 0) if stored is None else (stored.cursor, stored.end)
        start, records = cursor.offset, 0
        begun_ms = clock.monotonic_ms()
        for record in chain.from_iterable(compacted_records(self.warehouse, self.state, partition, start)):
            assert record.offset is not None
            self._check(LogId(self.state.name, partition), record)
            self.transactions.send(record)
            records += 1
            if self._is_full(begun_ms):
                cursor, end = self._commit(partition, cursor, record.offset + 1, end)
                begun_ms = clock.monotonic_ms()
        if self.transactions.records or cursor.offset < log.log_end_offset:
            cursor, end = self._commit(partition, cursor, log.log_end_offset, end)
        return PublishedLog(partition, start, cursor.offset, records)

    def _check(self, log: LogId, record: Record) -> None:
        if record.timestamp == 0:
            raise _without_time(log, record.offset or 0)
        if record.key is None and self.wants_keys:
            raise InvalidRecordError(
                f"{log}: the record at offset {record.offset} has no key, and a compacted topic takes none",
                hint="publish into a topic with cleanup.policy=delete and retention.ms=-1",
            )

    def _commit(self, partition: int, cursor: Cursor, offset: int, end: int) -> tuple[Cursor, int]:
        reached = advanced(cursor, self.state.log(partition), offset)
        brought = self.transactions.records
        end = self.transactions.commit(partition, reached, end)
        self.tell(brought)
        return reached, end

    def _is_full(self, begun_ms: int) -> bool:
        return (
            self.transactions.records >= TRANSACTION_RECORDS
            or self.transactions.bytes >= TRANSACTION_BYTES
            or self.warehouse.clock.monotonic_ms() - begun_ms >= TRANSACTION_MS
        )


def _check_continues(cursor: Cursor, state: TopicState, partition: int) -> None:
    match continuation(cursor, state, log_of(state, partition), compacted=True):
        case Continues():
            return
        case lost:
            raise lost_error(LogId(state.name, partition), cursor, lost, "publish into a topic that is not there yet")


def _check_timestamps(warehouse: Warehouse, state: TopicState) -> None:
    """Raises `InvalidRecordError` before anything is sent if the oldest record of a segment has timestamp 0."""
    for segment in (*warehouse.store.segments(state), *warehouse.store.view(state)):
        if segment.min_timestamp_ms == 0:
            raise _without_time(LogId(state.name, segment.partition), segment.base_offset)


def _without_time(log: LogId, offset: int) -> InvalidRecordError:
    return InvalidRecordError(
        f"{log}: the record at or behind offset {offset} has timestamp 0, which Kafka's client takes for now",
        hint="it cannot be published with its timestamp",
    )
