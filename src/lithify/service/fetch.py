"""Reading a log: from any offset, over the version it was opened on, and on with new ones (C2, C7).

    version 7   [seg][seg][  seg  ]|
    version 9   [   seg   ][  seg ][seg]|        a plain reader of 7 ends at its end;
                                    ▲            a following one goes on here, in 9

A reader of compacted data gets the view below D, where there is one, and the backlog from D on, in
one order (C33). A reader holds a list of files, not a snapshot, so that metadata can be kept small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lithify.compaction.rules import table_rules
from lithify.errors import DamagedError, LogTruncatedError, RefusedError, VersionSweptError
from lithify.model.log import LogState, Position, TopicState, segments_of
from lithify.model.names import LogId
from lithify.model.position import AtTime, Start, checked_offset
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.ports import Batch, Warehouse

POLL_S = 0.2
"""How often a following reader asks for a newer version while there is nothing to read."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a log is read: on with new versions or not, compacted data or the log as it stands."""

    follow: bool = False
    compacted: bool = False

    def start(self, log: LogState) -> int:
        """The first offset of what is read (C37)."""
        return log.compacted_start if self.compacted else log.log_start_offset

    def last_record(self, log: LogState) -> Position | None:
        """The last record of what is read (C36)."""
        return log.compacted_last_record if self.compacted else log.last_record

    def reads_view(self, log: LogState) -> bool:
        return self.compacted and log.view is not None


class LogReader:
    """Reads one log in offset order. Iterate over records, or over `batches()`."""

    def __init__(self, warehouse: Warehouse, state: TopicState, partition: int, start: Start, how: Reading) -> None:
        self._warehouse = warehouse
        self._how = how
        self._partition = partition
        self._open(state)
        self._position = self._resolve(start)

    @property
    def position(self) -> int:
        """The offset from which the next read goes on."""
        return self._position

    def __iter__(self) -> Iterator[Record]:
        for batch in self.chunks():
            for record in batch.records():
                assert record.offset is not None  # every stored record has one
                self._position = record.offset + 1
                yield record

    def batches(self) -> Iterator[Any]:
        """The same records as `pyarrow.Table`s of the columns of a segment."""
        for batch in self.chunks():
            yield batch.to_arrow()

    def chunks(self) -> Iterator[Batch]:
        """Stored batches from the position on; the position is behind a batch once it is handed out."""
        while True:
            yield from self._rest_of_version()
            if not self._how.follow:
                return
            if not self._advance():
                self._warehouse.clock.sleep(POLL_S)

    def poll(self) -> Iterator[Batch]:
        """What there is now, without waiting for more; a following reader looks at the newest version."""
        if self._how.follow:
            self._advance()
        yield from self._rest_of_version()

    def seek(self, offset: int | None = None, *, at_ms: int | None = None) -> None:
        """Goes to an offset, or to the first record at or after a time (C37)."""
        if (offset is None) == (at_ms is None):
            raise RefusedError("seek takes an offset or at_ms, one of them")
        self._position = self._resolve(AtTime(at_ms) if at_ms is not None else offset)  # type: ignore[arg-type]

    def has_message_available(self) -> bool:
        """Whether a read would return something now (C36): from metadata alone."""
        last = self._how.last_record(self._newest_log())
        return last is not None and last.offset >= self._position

    def last_message_id(self) -> Position | None:
        """Where the last record stands that this reader can still get (C36): from metadata alone."""
        return self._how.last_record(self._newest_log())

    def _open(self, state: TopicState) -> None:
        log = state.log(self._partition)
        segments = self._warehouse.store.segments(state, [self._partition])
        view = self._warehouse.store.view(state, [self._partition]) if self._how.reads_view(log) else ()
        # All of it at once: with the end of a version whose segments could not be listed, records would be skipped.
        self._state, self._log, self._pieces = state, log, pieces_of(log, segments, view, self._how)

    @property
    def _id(self) -> LogId:
        return LogId(self._state.name, self._partition)

    def _resolve(self, start: Start) -> int:
        match start:
            case "earliest":
                return self._how.start(self._log)
            case "latest":
                return self._log.log_end_offset
            case AtTime(timestamp_ms):
                return self._at_time(timestamp_ms)
            case _:
                return checked_offset(self._id, self._how.start(self._log), self._log.log_end_offset, start)

    def _at_time(self, timestamp_ms: int) -> int:
        for piece in self._pieces:
            if piece.segment.max_timestamp_ms < timestamp_ms:
                continue
            for batch in self._read(piece, self._how.start(self._log)):
                offset = batch.offset_at(timestamp_ms)
                if offset is not None:
                    return offset
        return self._log.log_end_offset

    def _rest_of_version(self) -> Iterator[Batch]:
        for piece in self._pieces:
            if piece.segment.end_offset <= self._position:
                continue
            for batch in self._read(piece, self._position):
                self._position = batch.end_offset  # a reader that stops here goes on behind the batch
                yield batch
            self._position = max(self._position, piece.segment.end_offset)
        self._position = max(self._position, self._log.log_end_offset)

    def _read(self, piece: Piece, start_offset: int) -> Iterator[Batch]:
        try:
            yield from self._warehouse.files.read(piece.segment, max(start_offset, piece.start_offset))
        except DamagedError as error:
            # Only a version that is kept has a right to its files (C7).
            if piece.segment.path in self._warehouse.store.named_files(self._state.name):
                raise
            raise VersionSweptError(
                f"{self._id}: version {self._state.version}, which this reader was opened on, was swept: "
                f"{piece.segment.path} is gone",
                hint=f"open a new reader; this one stood at {self._position}",
            ) from error

    def _newest_log(self) -> LogState:
        if not self._how.follow:
            return self._log
        newest = self._warehouse.store.load(self._state.name)
        self._check_still_there(newest)
        return newest.log(self._partition)

    def _advance(self) -> bool:
        """Moves to the newest version at the same offset; False if there is none."""
        newest = self._warehouse.store.load(self._state.name)
        if newest.version == self._state.version and newest.identity == self._state.identity:
            return False
        self._check_still_there(newest)
        self._open(newest)
        return True

    def _check_still_there(self, newest: TopicState) -> None:
        """A log that was cut below the position, or whose start passed it, cannot be followed (C7)."""
        if newest.identity != self._state.identity:
            raise LogTruncatedError(f"{self._id}: the topic was deleted and made again", hint="open a new reader")
        log = newest.log(self._partition)
        if was_cut_below(log, self._log.generation, self._position):
            raise LogTruncatedError(
                f"{self._id}: the log was truncated while it was read; it ends at {log.log_end_offset} now",
                hint=f"open a new reader at or below that, this one stood at {self._position}",
            )
        start = log_start_for(log, self._how)
        if start > self._position:
            raise LogTruncatedError(
                f"{self._id}: the log starts at {start} now, behind the position {self._position}",
                hint="records in between are gone; open a new reader at earliest",
            )


def was_cut_below(log: LogState, generation: int, position: int) -> bool:
    """Whether a truncation since the log was of that generation cut below a reader's position (C7)."""
    missed = log.generation - generation
    if missed > len(log.truncated):
        return True
    return missed > 0 and min(log.truncated[-missed:]) < position


def log_start_for(log: LogState, how: Reading) -> int:
    """Below which offset a reader that is under way has lost its place (C7)."""
    # Rounds take keys off the front of a view; only `delete-records` makes a place invalid there.
    return log.deleted_below if how.reads_view(log) else log.log_start_offset


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment to read, from an offset on."""

    segment: Segment
    start_offset: int


def pieces_of(
    log: LogState, segments: tuple[Segment, ...], view: tuple[Segment, ...], how: Reading
) -> tuple[Piece, ...]:
    """What is read of a log with these segments, those of its view included, in offset order (C33)."""
    if not how.reads_view(log):
        return tuple(Piece(s, log.log_start_offset) for s in segments)
    dirty = log.first_dirty_offset
    tail = tuple(Piece(s, dirty) for s in segments if s.end_offset > dirty)
    return tuple(Piece(s, log.deleted_below) for s in view) + tail


def table_batches(warehouse: Warehouse, state: TopicState) -> Iterator[Batch]:
    """The latest value of every live key, log by log: view and tail folded by the topic's strategy (C10, C33)."""
    segments = warehouse.store.segments(state)
    view = warehouse.store.view(state) if state.settings.side_by_side else ()
    for log in state.logs:
        here, viewed = segments_of(segments, log.partition), segments_of(view, log.partition)
        pieces = pieces_of(log, here, viewed, Reading(compacted=True))
        yield from warehouse.files.latest([piece.segment for piece in pieces], table_rules(log, state.settings))


class TopicReader:
    """Reads all logs of a topic: one after the other, or in turns while following."""

    def __init__(self, readers: Mapping[int, LogReader], warehouse: Warehouse, how: Reading) -> None:
        self._readers = readers
        self._warehouse = warehouse
        self._how = how

    def __iter__(self) -> Iterator[Record]:
        for batch in self._chunks():
            yield from batch.records()

    def batches(self) -> Iterator[Any]:
        """The same records as `pyarrow.Table`s, each of one log."""
        for batch in self._chunks():
            yield batch.to_arrow()

    def seek(self, offset: int | None = None, *, at_ms: int | None = None) -> None:
        """Goes to a time in every log. An offset means nothing across logs and is refused."""
        if offset is not None:
            raise RefusedError("an offset belongs to one log", hint="open the reader with partition=")
        for reader in self._readers.values():
            reader.seek(at_ms=at_ms)

    def has_message_available(self) -> bool:
        """Whether a read of any log would return something now (C36)."""
        return any(reader.has_message_available() for reader in self._readers.values())

    def last_message_id(self) -> dict[int, Position | None]:
        """By partition, where its last record stands (C36)."""
        return {partition: reader.last_message_id() for partition, reader in self._readers.items()}

    def _chunks(self) -> Iterator[Batch]:
        while True:
            read = 0
            for reader in self._readers.values():
                for batch in reader.poll():
                    read += len(batch)
                    yield batch
            if not self._how.follow:
                return
            if not read:
                self._warehouse.clock.sleep(POLL_S)


def open_log(
    warehouse: Warehouse, state: TopicState, partition: int, start: Start = "earliest", how: Reading = Reading()
) -> LogReader:
    """A reader of one log of `state`. Raises `UnknownTopicError` or `OffsetOutOfRangeError`."""
    state.check_partition(partition)
    return LogReader(warehouse, state, partition, start, how)


def open_topic(
    warehouse: Warehouse, state: TopicState, start: Start = "earliest", how: Reading = Reading()
) -> TopicReader:
    """A reader of all logs of `state`."""
    readers = {p: open_log(warehouse, state, p, start, how) for p in state.partitions}
    return TopicReader(readers, warehouse, how)
