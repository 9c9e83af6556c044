"""Consumes a topic from its start: the compacted records from the lake, the rest live from the cluster.

    lake       [ compacted ][ tail ]|
                                    ▼ the lake's log end, in every partition
    cluster    ── may be deleted ───[──────────► live

No record is repeated and none is skipped: offsets in the lake are Kafka's own (C1), ids Pulsar's own (C52).

    read ahead ≥ returned ≥ settled: what the user has processed, and what is stored

A call that is interrupted or fails, wherever that is, has returned nothing: the next one begins at what is settled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Self

from lithify.errors import BrokerError, PolicyError, RefusedError
from lithify.model.cursor import offsets_text
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.settings.units import plural
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.snapshot.collector import collector_at_rest
from lithify.service.snapshot.cursors import Cursors, copied_from, first_cursor, log_of
from lithify.service.snapshot.lake_then_live import SLICE_S, LakeThenLive
from lithify.service.snapshot.live import LiveSource, Reached, chosen_partitions
from lithify.service.snapshot.newest import Newest
from lithify.service.snapshot.numbering import check_numbering
from lithify.service.snapshot.position import PositionStore, StoredPosition
from lithify.service.snapshot.table_fold import Table, TableFold

STORE_MS = 10_000
"""Between two stores of the position, and two checks for new partitions, while records are polled."""
POLLS = 10
"""Polls per reading of the clock, which takes as long as a record of the lake does."""


class LakeAndLive:
    """Iterate over it for the records of a topic, endlessly: the lake's, then the ones of `live`, which it closes.

    It reads `partitions`, None for all. For one thread. Raises `UnknownSourceError`, `SourceLostError`,
    `SourceWentBackError`, `BrokerError`, and `LogTruncatedError` if it cannot continue at a stored cursor.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        name: TopicName,
        live: LiveSource,
        partitions: Sequence[int] | None,
        file: PositionStore | None,
    ) -> None:
        self._warehouse, self._name, self._live, self._wanted, self._file = warehouse, name, live, partitions, file
        try:
            self._newest = Newest(self._warehouse, self._name, self._live.check_copy)
            stored = StoredPosition({}) if self._file is None else self._file.load()
            state = self._newest.load()  # after what another run may have stored of it until now
            self._new = partitions is None and not stored.cursors
            self._live.learn(stored.ends)
            partitions = self._chosen(len(state.logs))
            for known in (stored.source_id, copied_from(self._warehouse, state, self._live.topic)):
                self._live.check_same(known)
            self._fold = TableFold(state.settings)
            self._cursors = Cursors(state, stored.cursors, partitions)
            self._goes_on = any(at.offset > first_cursor(state, p).offset for p, at in stored.cursors.items())
            self._settled = {p: self._first(state, p, stored) for p in self._cursors}
        except BaseException:
            self._live.close()
            raise
        self._reading = LakeThenLive(warehouse, self._newest, live, self._cursors, self._settled)
        self._ahead: deque[Record] = deque()
        self._handed: Sequence[Record] = ()
        self._within, self._polls = False, 0
        self._looked_ms = self._warehouse.clock.monotonic_ms()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is not None:
            self._handed = ()  # they may be unprocessed, so they are not settled and are returned again
        self._close(settle=error is None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._name}, processed up to {offsets_text(self.positions())}>"

    def __iter__(self) -> Iterator[Record]:
        while True:
            record = self.poll()
            if record is not None:
                yield record

    def poll(self, timeout_s: float = SLICE_S) -> Record | None:
        """The next record; None without one within the timeout. Records returned before count as processed."""
        self._begin()
        self._polls += 1
        if self._reading.tail is not None or self._polls % POLLS == 0:
            self._look_around_in_time()
        if not self._ahead:
            self._pull(timeout_s)
        record = self._ahead.popleft() if self._ahead else None
        self._handed, self._within = () if record is None else (record,), False
        return record

    def take(self, timeout_s: float = SLICE_S) -> Sequence[Record]:
        """The next records, none without one within the timeout. Records returned before count as processed."""
        self._begin()
        taken = self._taken(timeout_s)
        self._handed, self._within = taken, False
        return taken

    def caught_up(self) -> bool:
        """Whether all records up to the log ends that the cluster reported last were returned."""
        self._recover()
        self._within = True
        self._look_around_in_time()
        if not self._ahead:
            self._pull(SLICE_S)
        tail = self._reading.tail
        done = not self._ahead and tail is not None and tail.is_at_end(SLICE_S)
        self._within = False
        return done

    def fill(self, table: Table) -> int:
        """Updates a dict to what the cluster has now: by key, the latest record of every live key.

        Returns the number of records read; the next call continues after them, or after the last one that was put
        if this one is interrupted. Continue at a stored position only with the table that was filled up to it.
        Raises `RefusedError` for a table that has keys where it starts from the beginning: keys whose deletes are
        gone would remain. Also at a stored position where `compaction.strategy` is not `offset`: a table has no
        tombstones, so a late record would restore a deleted key (C11).
        """
        if self._new and table:
            raise RefusedError(
                f"{self._name}: the table has {plural(len(table), 'key')}, but this consumer starts from the "
                "beginning: keys that were deleted since would remain",
                hint="pass an empty table, or the position up to which this one was filled",
            )
        self._begin()
        if self._goes_on and self._fold.by_order:
            raise RefusedError(
                f"{self._name}: a table cannot be continued from a stored position, as "
                "compaction.strategy is not offset: late records may be older than what deleted their keys",
                hint="fill an empty table with a consumer that has no position",
            )
        self._live.check_same(self._live.topic_id)
        self._take_up_new_partitions()
        ends = self.ends()
        taken = 0
        with collector_at_rest():
            while self._ahead or not self._reading.has_read(ends):
                batch = self._taken(SLICE_S)
                self._fold.put_all(table, batch)
                self._settle(batch)
                taken += len(batch)
        self._within = False
        return taken

    def ends(self) -> Mapping[int, Reached]:
        """What the cluster has now, by partition. Raises `BrokerError`."""
        return self._live.ends(self._settled)

    def has_read(self, ends: Mapping[int, Reached]) -> bool:
        """Whether everything up to these ends was returned, from the cluster or the lake."""
        self._recover()
        return not self._ahead and self._reading.has_read(ends)

    def positions(self) -> dict[int, int]:
        """By partition, the offset after the last processed record."""
        return {partition: at.offset for partition, at in self._settled.items()}

    def position(self) -> StoredPosition:
        """What `store_position` stores: all records returned so far count as processed."""
        if not self._closed:
            self._recover()
            self._settle_handed()
        return self._position()

    def _position(self) -> StoredPosition:
        known = self._live.known_ends(places := self.positions())
        return StoredPosition.of(self._cursors.settled(places), self._live.topic_id, self._settled, known)

    def store_position(self) -> None:
        """Stores all records returned so far as processed. Raises `RefusedError` without a file."""
        if self._file is None:
            raise RefusedError("this consumer has no file for the position", hint="pass one as position=")
        self._file.store(self.position())

    def close(self) -> None:
        """Closes the consumer and stores the position: all returned records count as processed."""
        self._close(settle=True)

    def _close(self, *, settle: bool) -> None:
        if self._closed:
            return
        self._recover()
        if settle:
            self._settle_handed()
        self._closed = True
        self._reading.close_tail()
        self._live.close()
        self._store()

    def _store(self) -> None:
        if self._file is not None:
            self._file.store(self._position())

    def _check_open(self) -> None:
        if self._closed:
            raise RefusedError("the consumer is closed", hint="open a new one")

    def _begin(self) -> None:
        """Begins a call that returns records: what was returned before is processed."""
        self._recover()
        self._within, self._new = True, False
        self._settle_handed()

    def _recover(self) -> None:
        """After a call that did not return: what it has read is read again."""
        self._check_open()
        if self._within:
            self._ahead.clear()
            self._reading.go_back(self._reading.reached_by(self._handed))
            self._within = False

    def _settle_handed(self) -> None:
        self._settle(self._handed)
        self._handed = ()

    def _settle(self, records: Iterable[Record]) -> None:
        """Settles records that the user has processed, all that were returned and not settled before."""
        self._settled.update(self._reading.reached_by(records))
        tail = self._reading.tail
        if not self._ahead and tail is not None and tail.is_idle:
            self._settled.update(tail.reached)

    def _taken(self, timeout_s: float) -> Sequence[Record]:
        """All that is read ahead, else the next records."""
        self._look_around_in_time()
        if not self._ahead:
            self._pull(timeout_s)
        taken, self._ahead = self._ahead, deque()
        return taken

    def _first(self, state: TopicState, partition: int, stored: StoredPosition) -> Reached:
        """Where to start. Checks first that the cluster has all records that are missing in the lake."""
        at = stored.reached(partition, self._cursors.offset(partition))
        log = log_of(state, partition)
        check_numbering(self._warehouse, state, partition, at)
        begin = self._live.begin(partition, log, at)
        return at if begin is None else begin

    def _pull(self, timeout_s: float) -> None:
        """Reads the next records into `_ahead`, which remains empty if none arrived within the timeout."""
        clock = self._warehouse.clock
        deadline_ms = clock.monotonic_ms() + round(timeout_s * 1000)
        self._ahead.extend(self._reading.next(timeout_s))
        while not self._ahead and (left_ms := deadline_ms - clock.monotonic_ms()) > 0:
            self._ahead.extend(self._reading.next(left_ms / 1000))

    def _look_around_in_time(self) -> None:
        """Every `STORE_MS`, stores the position and adds new partitions."""
        now_ms = self._warehouse.clock.monotonic_ms()
        if now_ms - self._looked_ms < STORE_MS:
            return
        self._looked_ms = now_ms
        if self._reading.tail is not None:
            self._cursors.see_all(self._newest, self.positions())
        with suppress(BrokerError):  # the next fetch retries and raises it
            self._take_up_new_partitions()
        self._store()

    def _take_up_new_partitions(self) -> None:
        try:
            state = self._newest.load()
        except PolicyError:
            self._reading.close_tail()  # the next call checks it again, before it would continue there
            raise
        new = [p for p in self._chosen(len(state.logs)) if p not in self._settled]
        if new:
            self._reading.close_tail()
        for partition in new:
            self._cursors.add(partition, state)
            self._settled[partition] = self._reading.read[partition] = self._first(state, partition, StoredPosition({}))

    def _chosen(self, in_lake: int) -> Sequence[int]:
        return chosen_partitions(self._live, self._wanted, self._name, in_lake)
