"""Reads topics: from any offset, in the version they were opened on, then in newer ones (C2, C7).

    positions  log 0 ──▲────|   log 1 ───────▲|   log 2 ▲──────|      the first log that is not at its end
                       └ next record                                  is read next

A reader of compacted data gets the view below D, where there is one, and the backlog from D on, in
one order (C33). Where all logs are at the end of their version, a following reader continues in the newest.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from inspect import GEN_CLOSED, getgeneratorstate
from typing import Any, TypeVar, cast

from lithify.errors import RefusedError
from lithify.model.cursor import AtTime, Cursor, From, Start, check_of_all_logs, offsets_text
from lithify.model.message import MessageId, MessagePosition
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.segment import by_partition
from lithify.model.topic.log import LastRecord
from lithify.model.topic.state import TopicState
from lithify.ports.files import Batch
from lithify.ports.store import Warehouse
from lithify.rules.compaction.survivor_rules import table_rules
from lithify.rules.reading.pieces import Reading, pieces_of
from lithify.service.read.open_version import OpenVersion
from lithify.service.read.version_reader import VersionReader, latest

ONE_VERSION = Reading()
"""Its backlog is read, and no newer version."""
POLL_S = 0.2
"""Between two checks of a following reader for a newer version while there are no records to read."""

T = TypeVar("T")


class LogsReader:
    """Reads logs of one topic. Positions move by the record, or by the batch where batches are taken."""

    def __init__(
        self, warehouse: Warehouse, state: TopicState, readers: tuple[VersionReader, ...], how: Reading
    ) -> None:
        self._warehouse, self._name, self._readers, self._how = warehouse, state.name, readers, how
        self._records = self._endless(VersionReader.records)
        self._has_ids = state.settings.message_ids == "pulsar"

    def __iter__(self) -> Iterator[Record]:
        for record in self._going_on():  # noqa: UP028 - `yield from` would close it when a loop breaks
            yield record

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._name}, next offsets {offsets_text(self._next_offsets())}>"

    def _next_offsets(self) -> dict[int, int]:
        return {reader.partition: reader.position for reader in self._readers}

    def read_next(self) -> Record | None:
        """The next record. After the last one it is None; a following reader waits for another."""
        for record in self._going_on():  # not `next`: a signal after a call would lose what that has returned
            return record
        return None

    def batches(self) -> Iterator[Any]:
        """The same records as `pyarrow.Table`s of the columns of a segment, each of one log."""
        return self._endless(VersionReader.tables)

    def poll(self) -> Iterator[Batch]:
        """The current stored batches, without waiting; a following reader also checks for a newer version."""
        yield from self._rest(VersionReader.batches)
        if self._how.follow and self._advance():
            yield from self._rest(VersionReader.batches)

    def has_message_available(self) -> bool:
        """Whether a read would return something now (C36): from metadata alone."""
        if self._has_more():
            return True
        # True only for a record of the version that is now open, from which no round can remove it.
        return self._how.follow and self._advance() and self._has_more()

    def _last_records(self) -> Iterator[LastRecord | None]:
        if not self._how.follow:
            return (reader.last_record() for reader in self._readers)
        newest = self._warehouse.store.load(self._name)
        return (reader.last_record_of(newest) for reader in self._readers)

    def _last_ids(self) -> Iterator[LastRecord | MessagePosition | None]:
        if not self._has_ids:
            return self._last_records()
        newest = self._warehouse.store.load(self._name) if self._how.follow else None
        return (reader.last_position(newest) for reader in self._readers)

    def _going_on(self) -> Iterator[Record]:
        """The one generator behind all reads of single records, so that a file is not reopened for each."""
        if getgeneratorstate(self._records) == GEN_CLOSED:  # it failed, or ended and a `seek` may go back
            self._records = self._endless(VersionReader.records)
        return self._records

    def _endless(self, read: Callable[[VersionReader], Iterator[T]]) -> Generator[T, None, None]:
        """What `read` returns for each log, up to the end of the version; while following it does not end."""
        while True:
            yield from self._rest(read)
            if not self._how.follow:
                return
            if not self._advance():
                self._warehouse.clock.sleep(POLL_S)

    def _rest(self, read: Callable[[VersionReader], Iterator[T]]) -> Iterator[T]:
        """The rest of the open version. A `seek` in the meantime has effect (C37)."""
        while (reader := next((r for r in self._readers if not r.is_at_end), None)) is not None:
            yield from read(reader)

    def _has_more(self) -> bool:
        return any(reader.has_more for reader in self._readers)

    def _advance(self) -> bool:
        """Moves to the newest version at the same offsets; False if it is open already."""
        return self._advance_to(self._warehouse.store.load(self._name))

    def _advance_to(self, newest: TopicState) -> bool:
        version = OpenVersion(self._warehouse, newest, [reader.partition for reader in self._readers], self._how)
        moved = [reader.advance(version) for reader in self._readers]
        return any(moved)


class LogReader(LogsReader):
    """Reads one log in offset order. Iterate over records, or over `batches()`."""

    @property
    def position(self) -> int:
        """The offset at which the next read continues."""
        return self._readers[0].position

    def cursor(self) -> Cursor:
        """The value to store in order to continue here later, as `start` of another reader (C49)."""
        return self._readers[0].cursor

    place = cursor
    """The old name."""

    def seek(self, offset: int | MessageId | MessagePosition | None = None, *, at_ms: int | None = None) -> None:
        """Continues at an offset or a message id, or at the first record at or after a time (C37, C52)."""
        self._readers[0].go_to(_sought(offset, at_ms))

    def last_message_id(self) -> LastRecord | MessagePosition | None:
        """The last record that this reader can still read (C36): from metadata alone.

        In a topic that keeps Pulsar's message ids it is a `MessagePosition`, `EARLIEST` where there is none (C52). If
        the last record is an encrypted batch, it is read, for the index of the last message in it.
        """
        return next(self._last_ids())


class TopicReader(LogsReader):
    """Reads all logs of a topic: one after the other, while following version by version, new ones from their start."""

    def cursors(self) -> dict[int, Cursor]:
        """By partition, the cursors to store in order to continue here later, as `start` of another reader (C49)."""
        return {partition: reader.cursor for partition, reader in enumerate(self._readers)}

    places = cursors
    """The old name."""

    def _advance_to(self, newest: TopicState) -> bool:
        moved, new = super()._advance_to(newest), newest.partitions[len(self._readers) :]
        version = OpenVersion(self._warehouse, newest, new, self._how)
        self._readers += tuple(VersionReader(self._warehouse, version, p, "earliest", self._how) for p in new)
        return moved or len(new) > 0

    def seek(self, offset: int | None = None, *, at_ms: int | None = None) -> None:
        """Continues at a time in every log. An offset, which belongs to one log, is refused."""
        if offset is not None:
            raise RefusedError("an offset belongs to one log", hint="open the reader with partition=")
        start = _sought(offset, at_ms)
        for reader in self._readers:
            reader.go_to(start)

    def last_message_id(self) -> dict[int, LastRecord | MessagePosition | None]:
        """By partition, its last record, as `LogReader` gives it (C36)."""
        return dict(enumerate(self._last_ids()))


def _sought(offset: int | MessageId | MessagePosition | None, at_ms: int | None) -> Start:
    if offset is not None and at_ms is None:
        return offset
    if at_ms is not None and offset is None:
        return AtTime(at_ms)
    raise RefusedError("seek needs either an offset or at_ms")


def table_batches(
    warehouse: Warehouse, state: TopicState, partition: int | None = None, key: bytes | None = None
) -> Iterator[Batch]:
    """The latest value of every live key, log by log: view and tail folded by the topic's strategy (C10, C33).

    Of one log, or of one key, where they are given. Raises `UnknownTopicError` for a partition that is not there, and
    what `latest` raises.
    """
    if partition is not None:
        state.check_partition(partition)
    only = None if partition is None else [partition]
    segments = by_partition(warehouse.store.segments(state, only))
    view = by_partition(warehouse.store.view(state, only) if state.settings.side_by_side else ())
    for log in state.logs if partition is None else [state.log(partition)]:
        here, viewed = segments.get(log.partition, ()), view.get(log.partition, ())
        pieces = pieces_of(log, here, viewed, Reading(compacted=True))
        found = [piece.segment for piece in pieces]
        yield from latest(warehouse, state, log.partition, found, table_rules(log, state.settings), key)


def open_reader(
    warehouse: Warehouse,
    name: TopicName,
    partition: int | None,
    start: From | Mapping[int, Cursor],
    how: Reading,
    version: int | None,
) -> LogReader | TopicReader:
    """A reader of one log, or of all, in the newest version or a kept one.

    Raises what `open_log` and `version_of` raise, and `RefusedError` if start, logs and version do not fit together.
    """
    state = version_of(warehouse, name, version)
    how.check_version(version)
    if partition is not None:
        if isinstance(start, Mapping):
            raise RefusedError(
                f"cursors of all logs were passed for a reader of partition {partition}",
                hint="pass the cursor of that partition",
            )
        return open_log(warehouse, state, partition, _in_version(start, version), how)
    check_of_all_logs(start)
    if isinstance(start, Cursor):
        raise RefusedError("a cursor belongs to one log", hint="pass a partition, or the cursors of all logs")
    if isinstance(start, Mapping):
        start = {number: cast(Cursor, _in_version(cursor, version)) for number, cursor in start.items()}
    return open_topic(warehouse, state, start, how)


def _in_version(start: From, version: int | None) -> From:
    """The same start in a version that the user has named: a cursor of a later one has not seen a restoration."""
    if version is not None and isinstance(start, Cursor) and start.is_later_than(version):
        return start.without_run()
    return start


def version_of(warehouse: Warehouse, name: TopicName, version: int | None) -> TopicState:
    """A retained version, or the newest one. Raises `UnknownTopicError` or `UnknownVersionError`."""
    return warehouse.store.load(name) if version is None else warehouse.store.load_version(name, version)


def open_log(
    warehouse: Warehouse,
    state: TopicState,
    partition: int,
    start: From = "earliest",
    how: Reading = ONE_VERSION,
) -> LogReader:
    """A reader of one log of `state`. Raises `UnknownTopicError`, `OffsetOutOfRangeError` or `LogTruncatedError`."""
    state.check_partition(partition)
    return next(open_logs(warehouse, state, {partition: start}, how))


def open_logs(
    warehouse: Warehouse, state: TopicState, starts: Mapping[int, From], how: Reading = ONE_VERSION
) -> Iterator[LogReader]:
    """Readers of some logs of `state`, in the order of `starts`. Raises what `open_log` raises."""
    version = OpenVersion(warehouse, state, starts.keys(), how)
    for partition, start in starts.items():
        yield LogReader(warehouse, state, (VersionReader(warehouse, version, partition, start, how),), how)


def open_topic(
    warehouse: Warehouse,
    state: TopicState,
    start: Start | Mapping[int, Cursor] = "earliest",
    how: Reading = ONE_VERSION,
) -> TopicReader:
    """A reader of all logs of `state`. A log without a cursor in the mapping is read from its start."""
    if isinstance(start, Mapping):
        for partition in start:
            if not isinstance(partition, int):
                raise RefusedError(
                    f"cursors have the key {partition!r}, which is not a partition",
                    hint="use numbers as keys: JSON turns them into texts",
                )
            state.check_partition(partition)
    starts = start if isinstance(start, Mapping) else dict.fromkeys(state.partitions, start)
    version = OpenVersion(warehouse, state, state.partitions, how)
    readers = tuple(VersionReader(warehouse, version, p, starts.get(p, "earliest"), how) for p in state.partitions)
    return TopicReader(warehouse, state, readers, how)
