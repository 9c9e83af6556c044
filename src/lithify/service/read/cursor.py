"""A place in one log, and what one version of the topic has from there on (C2, C7, C33, C37).

    version 7   [seg][seg][  seg  ]|
    version 9   [   seg   ][  seg ][seg]|        at the end of 7 a cursor may move on to 9,
                                    ▲            at the same offset

The position is all that a cursor keeps of how far it came: who has read a record has moved it behind
that record, and who finds it somewhere else goes on there. It holds a list of files, not a snapshot, so
that metadata can be kept small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lithify.errors import DamagedError, LogTruncatedError, VersionSweptError
from lithify.model.cursor import Place
from lithify.model.log import LogState, Position, TopicState
from lithify.model.names import LogId
from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.start_position import AtTime, From, checked_offset
from lithify.ports.store import Batch, Warehouse
from lithify.reading.continuation import why_lost


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


class Cursor:
    """Reads one log of one version after the other, from its position on."""

    def __init__(self, warehouse: Warehouse, state: TopicState, partition: int, start: From, how: Reading) -> None:
        self._warehouse = warehouse
        self._how = how
        self._partition = partition
        self._open(state)
        self.go_to(start)

    @property
    def position(self) -> int:
        """The offset from which the next read goes on."""
        return self._position

    @property
    def place(self) -> Place:
        """What to keep, to go on from here another time (C49)."""
        return Place.of(self._state, self._log, self._position)

    @property
    def is_at_end(self) -> bool:
        """Whether this version was read to its end."""
        return self._position >= self._log.log_end_offset

    @property
    def has_more(self) -> bool:
        """Whether this version has a record from the position on (C36): from metadata alone."""
        last = self._how.last_record(self._log)
        return last is not None and last.offset >= self._position

    def go_to(self, start: From) -> None:
        """Raises `OffsetOutOfRangeError`, or `LogTruncatedError` for a place that is lost."""
        self._position = self._resolve(start)

    def records(self) -> Iterator[Record]:
        """Those of this version from the position on. It ends early if the position is moved meanwhile."""
        log = self._log
        for batch in self._stored():
            for record in batch.records():
                assert record.offset is not None  # every stored record has one
                self._position = behind = record.offset + 1
                yield record
                if self._position != behind:
                    return
        self._end(log)

    def batches(self) -> Iterator[Batch]:
        """The same as they are stored; the position is behind a batch once it is handed out."""
        log = self._log
        for batch in self._stored():
            self._position = behind = batch.end_offset
            yield batch
            if self._position != behind:
                return
        self._end(log)

    def last_record_of(self, newest: TopicState) -> Position | None:
        """Where the last record of that version stands (C36). Raises `LogTruncatedError`."""
        self._check_still_there(newest)
        return self._how.last_record(newest.log(self._partition))

    def last_record(self) -> Position | None:
        """Where the last record of this version stands (C36)."""
        return self._how.last_record(self._log)

    def advance(self, newest: TopicState) -> bool:
        """Moves to that version at the same offset; False if it is this one. Raises `LogTruncatedError`."""
        if newest.version == self._state.version and newest.identity == self._state.identity:
            return False
        self._check_still_there(newest)
        self._open(newest)
        return True

    def _open(self, state: TopicState) -> None:
        log = state.log(self._partition)
        segments = self._warehouse.store.segments(state, [self._partition])
        view = self._warehouse.store.view(state, [self._partition]) if self._how.reads_view(log) else ()
        # All of it at once: with the end of a version whose segments could not be listed, records would be skipped.
        self._state, self._log, self._pieces = state, log, pieces_of(log, segments, view, self._how)

    def _end(self, log: LogState) -> None:
        """The segments of that version have been read."""
        if self._log is log:  # else who looked for more meanwhile has moved on to another
            self._position = max(self._position, log.log_end_offset)

    @property
    def _id(self) -> LogId:
        return LogId(self._state.name, self._partition)

    def _resolve(self, start: From) -> int:
        match start:
            case Place(offset=offset):
                self._check(start, self._state, f"start at offset {offset} to go on all the same, or at earliest")
                return self._resolve(offset)
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

    def _stored(self) -> Iterator[Batch]:
        for piece in self._pieces:
            if piece.segment.end_offset > self._position:
                yield from self._read(piece, self._position)

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

    def _check_still_there(self, newest: TopicState) -> None:
        """Nobody goes on where the log no longer is, or where deletes went unseen (C7, C49)."""
        if newest.identity == self._state.identity and newest.version < self._state.version:
            raise LogTruncatedError(
                f"{self._id}: the topic is at version {newest.version}, and was read at version "
                f"{self._state.version}: an earlier state of it was put back, such as a backup",
                hint="open a new reader, at earliest or where what was read is still true",
            )
        self._check(self.place, newest, "open a new reader, at earliest or where the log still is")

    def _check(self, place: Place, state: TopicState, hint: str) -> None:
        reason = why_lost(place, state, state.log(self._partition), compacted=self._how.compacted)
        if reason is not None:
            raise LogTruncatedError(f"{self._id}: {reason}", hint=hint)


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
