"""Reading topics: from any offset, over the version they were opened on, and on with new ones (C2, C7).

    positions  log 0 ──▲────|   log 1 ───────▲|   log 2 ▲──────|      the first that is not at its end
                       └ next record                                  is read on

A reader of compacted data gets the view below D, where there is one, and the backlog from D on, in
one order (C33). Where all logs are at the end of their version, a following reader continues in the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from inspect import GEN_CLOSED, getgeneratorstate
from typing import Any, TypeVar

from lithify.compaction.rules import table_rules
from lithify.errors import RefusedError
from lithify.model.cursor import Cursor
from lithify.model.log import LastRecord, TopicState, segments_of
from lithify.model.record import Record
from lithify.model.start_position import AtTime, From, Start
from lithify.ports.files import Batch
from lithify.ports.store import Warehouse
from lithify.reading.pieces import Reading, pieces_of
from lithify.service.read.version_reader import VersionReader

AS_IT_STANDS = Reading()
POLL_S = 0.2
"""How often a following reader asks for a newer version while there is nothing to read."""

T = TypeVar("T")


class _Reader:
    """Reads logs of one topic. Positions move by the record, or by the batch where batches are taken."""

    def __init__(
        self, warehouse: Warehouse, state: TopicState, readers: tuple[VersionReader, ...], how: Reading
    ) -> None:
        self._warehouse, self._name, self._readers, self._how = warehouse, state.name, readers, how
        self._records = self._endless(VersionReader.records)

    def __iter__(self) -> Iterator[Record]:
        for record in self._going_on():  # noqa: UP028 - it would end with a loop that is left
            yield record

    def read_next(self) -> Record | None:
        """The next record. Behind the last one it is None, or a following reader waits for another."""
        return next(self._going_on(), None)

    def batches(self) -> Iterator[Any]:
        """The same records as `pyarrow.Table`s of the columns of a segment, each of one log."""
        for batch in self._endless(VersionReader.batches):
            yield batch.to_arrow()

    def poll(self) -> Iterator[Batch]:
        """The stored batches that there are now, without waiting; a following reader looks for a newer version."""
        yield from self._rest(VersionReader.batches)
        if self._how.follow and self._advance():
            yield from self._rest(VersionReader.batches)

    def has_message_available(self) -> bool:
        """Whether a read would return something now (C36): from metadata alone."""
        if self._has_more():
            return True
        # In the version that was looked at it stays there: no round takes away what was promised.
        return self._how.follow and self._advance() and self._has_more()

    def _last_records(self) -> Iterator[LastRecord | None]:
        if not self._how.follow:
            return (reader.last_record() for reader in self._readers)
        newest = self._warehouse.store.load(self._name)
        return (reader.last_record_of(newest) for reader in self._readers)

    def _going_on(self) -> Iterator[Record]:
        """One for all who ask record by record: a file is not opened anew for each."""
        if getgeneratorstate(self._records) == GEN_CLOSED:  # it has failed, or is at an end it may be sent back from
            self._records = self._endless(VersionReader.records)
        return self._records

    def _endless(self, read: Callable[[VersionReader], Iterator[T]]) -> Generator[T, None, None]:
        """What readers of the logs give, up to the end of their versions, or without one while following."""
        while True:
            yield from self._rest(read)
            if not self._how.follow:
                return
            if not self._advance():
                self._warehouse.clock.sleep(POLL_S)

    def _rest(self, read: Callable[[VersionReader], Iterator[T]]) -> Iterator[T]:
        """What is left of the versions that the logs are read at. It sees where they were sent meanwhile (C37)."""
        while (reader := next((r for r in self._readers if not r.is_at_end), None)) is not None:
            yield from read(reader)

    def _has_more(self) -> bool:
        return any(reader.has_more for reader in self._readers)

    def _advance(self) -> bool:
        """Moves to the newest version at the same offsets; False if there is none."""
        newest = self._warehouse.store.load(self._name)
        moved = [reader.advance(newest) for reader in self._readers]
        return any(moved)


class LogReader(_Reader):
    """Reads one log in offset order. Iterate over records, or over `batches()`."""

    @property
    def position(self) -> int:
        """The offset at which the next read continues."""
        return self._readers[0].position

    def cursor(self) -> Cursor:
        """What to store, to continue here later: `start` of another reader (C49)."""
        return self._readers[0].cursor

    place = cursor
    """Its first name."""

    def seek(self, offset: int | None = None, *, at_ms: int | None = None) -> None:
        """Goes to an offset, or to the first record at or after a time (C37): what is read next is there."""
        self._readers[0].go_to(_sought(offset, at_ms))

    def last_message_id(self) -> LastRecord | None:
        """The last record that this reader can still read (C36): from metadata alone."""
        return next(self._last_records())


class TopicReader(_Reader):
    """Reads all logs of a topic: one after the other, while following version by version."""

    def cursors(self) -> dict[int, Cursor]:
        """By partition, what to store, to continue here later: `start` of another reader (C49)."""
        return {partition: reader.cursor for partition, reader in enumerate(self._readers)}

    places = cursors
    """Its first name."""

    def seek(self, offset: int | None = None, *, at_ms: int | None = None) -> None:
        """Goes to a time in every log. An offset means nothing across logs and is refused."""
        if offset is not None:
            raise RefusedError("an offset belongs to one log", hint="open the reader with partition=")
        start = _sought(offset, at_ms)
        for reader in self._readers:
            reader.go_to(start)

    def last_message_id(self) -> dict[int, LastRecord | None]:
        """By partition, its last record (C36)."""
        return dict(enumerate(self._last_records()))


def _sought(offset: int | None, at_ms: int | None) -> Start:
    if offset is not None and at_ms is None:
        return offset
    if at_ms is not None and offset is None:
        return AtTime(at_ms)
    raise RefusedError("seek takes an offset or at_ms, one of them")


def table_batches(warehouse: Warehouse, state: TopicState) -> Iterator[Batch]:
    """The latest value of every live key, log by log: view and tail folded by the topic's strategy (C10, C33)."""
    segments = warehouse.store.segments(state)
    view = warehouse.store.view(state) if state.settings.side_by_side else ()
    for log in state.logs:
        here, viewed = segments_of(segments, log.partition), segments_of(view, log.partition)
        pieces = pieces_of(log, here, viewed, Reading(compacted=True))
        yield from warehouse.files.latest([piece.segment for piece in pieces], table_rules(log, state.settings))


def open_log(
    warehouse: Warehouse,
    state: TopicState,
    partition: int,
    start: From = "earliest",
    how: Reading = AS_IT_STANDS,
) -> LogReader:
    """A reader of one log of `state`. Raises `UnknownTopicError`, `OffsetOutOfRangeError` or `LogTruncatedError`."""
    state.check_partition(partition)
    return LogReader(warehouse, state, (VersionReader(warehouse, state, partition, start, how),), how)


def open_topic(
    warehouse: Warehouse,
    state: TopicState,
    start: Start | Mapping[int, Cursor] = "earliest",
    how: Reading = AS_IT_STANDS,
) -> TopicReader:
    """A reader of all logs of `state`; one that has no cursor among those that are given begins with its log."""
    if isinstance(start, Mapping):
        for partition in start:
            state.check_partition(partition)
    starts = start if isinstance(start, Mapping) else dict.fromkeys(state.partitions, start)
    readers = tuple(VersionReader(warehouse, state, p, starts.get(p, "earliest"), how) for p in state.partitions)
    return TopicReader(warehouse, state, readers, how)
