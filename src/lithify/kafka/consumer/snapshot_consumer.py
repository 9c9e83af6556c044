"""Consumes a topic from its start: the compacted records from the lake, the rest live from Kafka.

    lake    [ compacted ][ tail ]|
                                 ▼ the lake's log end, in every partition
    Kafka   ── may be deleted ───[──────────► live, read_committed

No record is repeated and none is skipped, since offsets in the lake are Kafka's own (C1).

    read ahead ≥ returned ≥ settled: what the user has processed, and what is stored
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lithify.errors import BrokerError, RefusedError, UnknownSourceError
from lithify.kafka.client import SLICE_S, Cluster
from lithify.kafka.consumer.cursors import Cursors, compacted_records, copied_from, first_cursor, log_of
from lithify.kafka.consumer.live_tail import LiveTail, check_reachable, check_same
from lithify.kafka.consumer.position_file import PositionFile, StoredPosition
from lithify.kafka.consumer.table_fold import Table, TableFold, collector_at_rest
from lithify.model.log import TopicState
from lithify.model.record import Record

if TYPE_CHECKING:
    from lithify.api.topic import Topic

STORE_MS = 10_000
"""Between two stores of the position, and two checks for new partitions, while records are polled."""
POLLS = 10
"""Polls per reading of the clock, which takes as long as a record of the lake does."""


class SnapshotConsumer:
    """Iterate over it for the records of `topic`, endlessly: those of the lake, then Kafka's.

    `conf` is librdkafka's, with `bootstrap.servers` at least. `kafka_topic` is the topic's name in Kafka,
    by default that in the lake; `partitions` are those to read, by default all. `position` is the path of a
    file: the consumer stores the cursors of its user there and continues at them the next time. `timeout_s`
    bounds every wait for a cluster that does not answer. For one thread.

    Raises `UnknownSourceError`, `SourceLostError` (which names the missing range of offsets),
    `SourceWentBackError`, `BrokerError` for a cluster that does not answer or refuses the client,
    `LogTruncatedError` where it cannot continue at a stored cursor, `ConnectorError` without Kafka's client.
    """

    def __init__(
        self,
        topic: Topic,
        conf: Mapping[str, Any],
        *,
        kafka_topic: str | None = None,
        partitions: Sequence[int] | None = None,
        position: str | PathLike[str] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self._warehouse, self._name = topic.warehouse, topic.topic_name
        self._kafka_topic = kafka_topic or topic.topic_name.topic
        self._wanted = partitions
        self._cluster = Cluster(conf, timeout_s)
        self._file = None if position is None else PositionFile(Path(position), topic.name, self._kafka_topic)
        self._asking = self._cluster.consumer()
        try:
            state = self._warehouse.store.load(self._name)
            stored = StoredPosition({}) if self._file is None else self._file.load()
            partitions = self._chosen(len(state.logs))
            self._kafka_id = self._cluster.topic_id(self._kafka_topic)
            for known in (stored.kafka_id, copied_from(self._warehouse, state, self._kafka_topic)):
                check_same(self._kafka_topic, known, self._kafka_id)
            self._fold = TableFold(state.settings)
            self._cursors = Cursors(state, stored.cursors, partitions)
            self._goes_on = any(at.offset > first_cursor(state, p).offset for p, at in stored.cursors.items())
            self._settled = {partition: self._first_offset(state, partition) for partition in self._cursors}
        except BaseException:
            self._asking.close()
            raise
        self._read = dict(self._settled)
        self._batches: Iterator[Sequence[Record]] = self._endless()
        self._ahead: deque[Record] = deque()
        self._handed: Record | None = None
        self._tail: LiveTail | None = None
        self._wait_s = SLICE_S
        self._polls = 0
        self._looked_ms = self._warehouse.clock.monotonic_ms()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            self._handed = None  # it may be unprocessed, so it is not settled and is returned again
        self._close(settle=error is None)

    def __iter__(self) -> Iterator[Record]:
        while True:
            record = self.poll()
            if record is not None:
                yield record

    def poll(self, timeout_s: float = SLICE_S) -> Record | None:
        """The next record; None without one within the timeout. Records returned before count as processed."""
        self._check_open()
        self._settle()
        self._polls += 1
        if self._tail is not None or self._polls % POLLS == 0:
            self._look_around_in_time()
        if not self._ahead:
            self._pull(timeout_s)
        self._handed = self._ahead.popleft() if self._ahead else None
        return self._handed

    def caught_up(self) -> bool:
        """Whether all records up to the log ends that Kafka reported last were returned."""
        self._check_open()
        if not self._ahead:
            self._pull(SLICE_S)
        return not self._ahead and self._tail is not None and self._tail.is_at_end(SLICE_S)

    def fill(self, table: Table) -> int:
        """Updates a dict to what Kafka has now: by key, the latest record of every live key.

        Returns the number of records read; the next call continues after them. Continue at a stored position
        only with the table that was filled up to it. Raises `RefusedError` at a stored position where
        `compaction.strategy` is not `offset`: a table has no tombstones, so a late record would restore a
        deleted key (C11).
        """
        self._check_open()
        if self._goes_on and self._fold.by_order:
            raise RefusedError(
                f"{self._name}: a table cannot be continued from a stored position, as "
                "compaction.strategy is not offset: late records may be older than what deleted their keys",
                hint="fill an empty table with a consumer that has no position",
            )
        check_same(self._kafka_topic, self._kafka_id, self._cluster.topic_id(self._kafka_topic))
        self._settle()
        ends = {partition: self._kafka_ends(partition)[1] for partition in self._settled}
        taken = 0
        with collector_at_rest():
            while self._ahead or not self._reached(ends):
                self._look_around_in_time()
                if not self._ahead:
                    self._pull(SLICE_S)
                batch, self._ahead = self._ahead, deque()
                self._fold.put_all(table, batch)
                taken += len(batch)
                self._handed = batch[-1] if batch else None
                self._settle()
        return taken

    def positions(self) -> dict[int, int]:
        """By partition, the offset after the last processed record."""
        return dict(self._settled)

    def store_position(self) -> None:
        """Stores all records returned so far as processed. Raises `RefusedError` without a file."""
        if self._file is None:
            raise RefusedError("there is no file for the position", hint="position= names one")
        self._settle()
        self._store()

    def close(self) -> None:
        """Closes the consumer and stores the position: all returned records count as processed."""
        self._close(settle=True)

    def _close(self, *, settle: bool) -> None:
        if self._closed:
            return
        if settle:
            self._settle()
        self._closed = True
        self._close_tail()
        self._asking.close()
        self._store()

    def _store(self) -> None:
        if self._file is not None:
            self._file.store(StoredPosition(self._cursors.settled(self._settled), self._kafka_id))

    def _check_open(self) -> None:
        if self._closed:
            raise RefusedError("the consumer is closed", hint="make a new one")

    def _settle(self) -> None:
        """Settles the record returned last: the user has processed it."""
        if self._handed is not None:
            assert self._handed.partition is not None and self._handed.offset is not None
            self._settled[self._handed.partition] = self._handed.offset + 1
            self._handed = None
        if not self._ahead and self._tail is not None and self._tail.is_idle:
            self._settled.update(self._tail.offsets)

    def _first_offset(self, state: TopicState, partition: int) -> int:
        """The offset to start at. Checks first that Kafka has all records that the lake has not."""
        offset = self._cursors.offset(partition)
        end = max(offset, log_of(state, partition).log_end_offset)
        ends = self._kafka_ends(partition)
        if end == 0:  # the lake has no records of it: start at Kafka's log start, as any consumer
            return ends[0]
        check_reachable(self._kafka_topic, partition, ends, end)
        return offset

    def _reached(self, ends: Mapping[int, int]) -> bool:
        read = self._read if self._tail is None else self._tail.offsets
        return all(read[partition] >= end for partition, end in ends.items())

    def _pull(self, timeout_s: float) -> None:
        """Reads the next records into `_ahead`, which stays empty if none arrived within the timeout."""
        clock = self._warehouse.clock
        deadline_ms = clock.monotonic_ms() + round(timeout_s * 1000)
        self._wait_s = timeout_s
        self._ahead.extend(self._next())
        while not self._ahead and (left_ms := deadline_ms - clock.monotonic_ms()) > 0:
            self._wait_s = left_ms / 1000
            self._ahead.extend(self._next())

    def _next(self) -> Sequence[Record]:
        try:
            return next(self._batches)
        except BaseException:
            self._close_tail()
            self._batches = self._endless()  # the next call continues where this one failed
            raise

    def _endless(self) -> Iterator[Sequence[Record]]:
        while True:  # again whenever Kafka's topic got more partitions
            for partition in list(self._read):
                yield from self._from_lake(partition)
            for partition in list(self._read):
                yield from self._up_to_kafka(partition)
            clock, topic_id = self._warehouse.clock, self._kafka_id
            self._tail = LiveTail(self._cluster, self._kafka_topic, self._read, clock, topic_id=topic_id)
            while self._tail is not None:
                yield self._tail.take(min(self._wait_s, SLICE_S))

    def _from_lake(self, partition: int) -> Iterator[Sequence[Record]]:
        state = self._warehouse.store.load(self._name)
        self._cursors.see(partition, state, self._settled[partition], self._read[partition])
        for batch in compacted_records(self._warehouse, state, partition, self._read[partition]):
            assert batch[-1].offset is not None
            self._read[partition] = batch[-1].offset + 1
            yield batch
        end = log_of(state, partition).log_end_offset
        self._read[partition] = max(self._read[partition], end)

    def _up_to_kafka(self, partition: int) -> Iterator[Sequence[Record]]:
        """Records that were ingested meanwhile, if Kafka has deleted them since."""
        if self._kafka_ends(partition)[0] > self._read[partition]:
            yield from self._from_lake(partition)
        check_reachable(self._kafka_topic, partition, self._kafka_ends(partition), self._read[partition])

    def _look_around_in_time(self) -> None:
        """Every `STORE_MS`, stores the position and adds new partitions."""
        now_ms = self._warehouse.clock.monotonic_ms()
        if now_ms - self._looked_ms < STORE_MS:
            return
        self._looked_ms = now_ms
        if self._tail is not None:
            self._cursors.see_all(self._warehouse, self._name, self._settled)
            with suppress(BrokerError):  # the next fetch retries and raises it
                self._take_up_new_partitions()
        self._store()

    def _take_up_new_partitions(self) -> None:
        state = self._warehouse.store.load(self._name)
        new = [p for p in self._chosen(len(state.logs)) if p not in self._settled]
        if new:
            self._close_tail()
        for partition in new:
            self._cursors.add(partition, state)
            self._settled[partition] = self._read[partition] = self._first_offset(state, partition)

    def _close_tail(self) -> None:
        if self._tail is not None:
            self._read.update(self._tail.offsets)
            self._tail.close()
            self._tail = None

    def _chosen(self, in_lake: int) -> Sequence[int]:
        """The partitions to read. Raises `UnknownSourceError` where Kafka has fewer."""
        in_kafka = self._cluster.partitions(self._asking, self._kafka_topic)
        least = in_lake if self._wanted is None else max(self._wanted, default=-1) + 1
        if in_kafka < least or (self._wanted is not None and min(self._wanted, default=0) < 0):
            raise UnknownSourceError(
                f"Kafka's {self._kafka_topic} has {in_kafka} partitions, "
                + (f"{self._name} in the lake {in_lake}" if self._wanted is None else f"not {sorted(self._wanted)}"),
                hint="is it the same topic?" if self._wanted is None else "they are numbered from 0",
            )
        return range(in_kafka) if self._wanted is None else sorted(set(self._wanted))

    def _kafka_ends(self, partition: int) -> tuple[int, int]:
        return self._cluster.ends(self._asking, self._kafka_topic, partition)
