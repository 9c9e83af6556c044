"""Consumes a topic from its start: the compacted records from the lake, the rest live from the cluster.

    lake       [ compacted ][ tail ]|
                                    ▼ the lake's log end, in every partition
    cluster    ── may be deleted ───[──────────► live

No record is repeated and none is skipped: offsets in the lake are Kafka's own (C1), ids Pulsar's own (C52).

    read ahead ≥ returned ≥ settled: what the user has processed, and what is stored
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Self

from lithify.errors import BrokerError, PolicyError, RefusedError, SourceLostError
from lithify.model.message import MessageId
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.snapshot.cursors import Cursors, compacted_records, copied_from, first_cursor, log_of
from lithify.snapshot.live import LiveSource, LiveTail, Reached, chosen_partitions
from lithify.snapshot.newest import Newest
from lithify.snapshot.numbering import check_numbering
from lithify.snapshot.position import PositionStore, StoredPosition
from lithify.snapshot.table_fold import Table, TableFold, collector_at_rest

SLICE_S = 1.0
"""How long one wait for records is at most."""
STORE_MS = 10_000
"""Between two stores of the position, and two checks for new partitions, while records are polled."""
POLLS = 10
"""Polls per reading of the clock, which takes as long as a record of the lake does."""


class LakeAndLive:
    """Iterate over it for the records of a topic, endlessly: those of the lake, then those of `live`, which it closes.

    `partitions` are those to read, None for all. For one thread. Raises `UnknownSourceError`, `SourceLostError`,
    `SourceWentBackError`, `BrokerError`, and `LogTruncatedError` where it cannot continue at a stored cursor.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        name: TopicName,
        live: LiveSource,
        partitions: Sequence[int] | None,
        file: PositionStore | None,
    ) -> None:
        self._warehouse, self._name = warehouse, name
        self._live, self._wanted, self._file = live, partitions, file
        try:
            self._newest = Newest(self._warehouse, self._name, self._live.check_copy)
            state = self._newest.load()
            stored = StoredPosition({}) if self._file is None else self._file.load()
            partitions = self._chosen(len(state.logs))
            for known in (stored.source_id, copied_from(self._warehouse, state, self._live.topic)):
                self._live.check_same(known)
            self._fold = TableFold(state.settings)
            self._cursors = Cursors(state, stored.cursors, partitions)
            self._goes_on = any(at.offset > first_cursor(state, p).offset for p, at in stored.cursors.items())
            self._settled = {p: self._first(state, p, stored.message_ids.get(p)) for p in self._cursors}
        except BaseException:
            self._live.close()
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

    def take(self, timeout_s: float = SLICE_S) -> Sequence[Record]:
        """The next records, none without one within the timeout. Those returned before count as processed."""
        self._check_open()
        self._settle()
        self._look_around_in_time()
        if not self._ahead:
            self._pull(timeout_s)
        taken, self._ahead = self._ahead, deque()
        self._handed = taken[-1] if taken else None
        return taken

    def caught_up(self) -> bool:
        """Whether all records up to the log ends that the cluster reported last were returned."""
        self._check_open()
        if not self._ahead:
            self._pull(SLICE_S)
        return not self._ahead and self._tail is not None and self._tail.is_at_end(SLICE_S)

    def fill(self, table: Table) -> int:
        """Updates a dict to what the cluster has now: by key, the latest record of every live key.

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
        self._live.check_same(self._live.topic_id)
        self._settle()
        ends = self.ends()
        taken = 0
        with collector_at_rest():
            while self._ahead or not self.has_read(ends):
                batch = self.take()
                self._fold.put_all(table, batch)
                taken += len(batch)
                self._settle()
        return taken

    def ends(self) -> Mapping[int, Reached]:
        """What the cluster has now, by partition. Raises `BrokerError`."""
        return self._live.ends(self._settled)

    def has_read(self, ends: Mapping[int, Reached]) -> bool:
        """Whether everything up to these ends was read, from the cluster or the lake."""
        read = self._read if self._tail is None else self._tail.reached
        return all(read[partition].has(end) for partition, end in ends.items())

    def positions(self) -> dict[int, int]:
        """By partition, the offset after the last processed record."""
        return {partition: at.offset for partition, at in self._settled.items()}

    def position(self) -> StoredPosition:
        """What `store_position` stores: all records returned so far count as processed."""
        self._settle()
        message_ids = {p: at.message for p, at in self._settled.items() if at.message is not None}
        return StoredPosition(self._cursors.settled(self.positions()), self._live.topic_id, message_ids)

    def store_position(self) -> None:
        """Stores all records returned so far as processed. Raises `RefusedError` without a file."""
        if self._file is None:
            raise RefusedError("there is no file for the position", hint="position= names one")
        self._file.store(self.position())

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
        self._live.close()
        self._store()

    def _store(self) -> None:
        if self._file is not None:
            self._file.store(self.position())

    def _check_open(self) -> None:
        if self._closed:
            raise RefusedError("the consumer is closed", hint="make a new one")

    def _settle(self) -> None:
        """Settles the record returned last: the user has processed it."""
        if self._handed is not None:
            assert self._handed.partition is not None
            self._settled[self._handed.partition] = Reached.by(self._handed)
            self._handed = None
        if not self._ahead and self._tail is not None and self._tail.is_idle:
            self._settled.update(self._tail.reached)

    def _first(self, state: TopicState, partition: int, message: MessageId | None) -> Reached:
        """Where to start. Checks first that the cluster has all records that the lake has not."""
        at = Reached(self._cursors.offset(partition), message)
        log = log_of(state, partition)
        check_numbering(self._warehouse, state, partition, at)
        begin = self._live.begin(partition, log, at)
        return at if begin is None else begin

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
        while True:  # again whenever the topic got more partitions
            for partition in list(self._read):
                yield from self._from_lake(partition, self._newest.recent())
            for partition in list(self._read):
                yield from self._up_to_live(partition)
            self._tail = self._live.tail(self._read)
            while self._tail is not None:
                try:
                    taken = self._tail.take(min(self._wait_s, SLICE_S))
                except SourceLostError:  # the lake may have it by now; `_up_to_live` raises it if not
                    self._close_tail()
                else:
                    yield taken

    def _from_lake(self, partition: int, state: TopicState) -> Iterator[Sequence[Record]]:
        log, at = log_of(state, partition), self._read[partition]
        check_numbering(self._warehouse, state, partition, at)
        self._cursors.see(partition, state, self._settled[partition].offset, at.offset)
        for batch in compacted_records(self._warehouse, state, partition, at.offset):
            self._read[partition] = Reached.by(batch[-1])
            yield batch
        if log.log_end_offset >= self._read[partition].offset:
            beyond = at.message is not None and (log.copied_to is None or not log.copied_to.covers(at.message))
            self._read[partition] = Reached(log.log_end_offset, at.message if beyond else log.copied_to)

    def _up_to_live(self, partition: int) -> Iterator[Sequence[Record]]:
        """Records that were ingested meanwhile, if the cluster has deleted them since."""
        while (missing := self._live.missing(partition, self._read[partition])) is not None:
            before = self._read[partition]
            yield from self._from_lake(partition, self._newest.load())
            if self._read[partition] == before:
                raise missing

    def _look_around_in_time(self) -> None:
        """Every `STORE_MS`, stores the position and adds new partitions."""
        now_ms = self._warehouse.clock.monotonic_ms()
        if now_ms - self._looked_ms < STORE_MS:
            return
        self._looked_ms = now_ms
        if self._tail is not None:
            self._cursors.see_all(self._warehouse, self._name, self.positions())
            with suppress(BrokerError):  # the next fetch retries and raises it
                self._take_up_new_partitions()
        self._store()

    def _take_up_new_partitions(self) -> None:
        try:
            state = self._newest.load()
        except PolicyError:
            self._close_tail()  # the next call checks it again, before it would continue there
            raise
        new = [p for p in self._chosen(len(state.logs)) if p not in self._settled]
        if new:
            self._close_tail()
        for partition in new:
            self._cursors.add(partition, state)
            self._settled[partition] = self._read[partition] = self._first(state, partition, None)

    def _close_tail(self) -> None:
        if self._tail is not None:
            self._read.update(self._tail.reached)
            self._tail.close()
            self._tail = None

    def _chosen(self, in_lake: int) -> Sequence[int]:
        return chosen_partitions(self._live, self._wanted, self._name, in_lake)
