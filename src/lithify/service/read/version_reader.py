"""Reads one log in one version of its topic, then in the next version (C2, C7, C33, C37).

    version 7   [seg][seg][  seg  ]|
    version 9   [   seg   ][  seg ][seg]|        at the end of 7 a reader may move on to 9,
                                    ▲            at the same offset

The position is a reader's only state: reading a record moves it to the next offset, and the next read
continues there. A reader holds a list of files, not an Iceberg snapshot, so snapshots can expire.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lithify.errors import DamagedError, OffsetOutOfRangeError, VersionSweptError
from lithify.model.cursor import AtTime, Cursor, From, checked_offset
from lithify.model.message import MessageId, MessagePosition
from lithify.model.names import LogId
from lithify.model.record import Record
from lithify.model.segment import Segment, sizes_of
from lithify.model.topic.log import LastRecord, LogState
from lithify.model.topic.state import TopicState
from lithify.ports.files import Batch
from lithify.ports.store import Warehouse
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.reading.continuation import Continues, Gone, Restored, continuation, lost_error
from lithify.rules.reading.message_positions import check_has_ids
from lithify.rules.reading.pieces import Piece, Reading
from lithify.service.last_record import last_position
from lithify.service.read.open_version import OpenVersion


class VersionReader:
    """Reads one log from its position on, in one version after the other."""

    def __init__(self, warehouse: Warehouse, version: OpenVersion, partition: int, start: From, how: Reading) -> None:
        self._warehouse = warehouse
        self._how = how
        self._partition = partition
        self._hold(version, None)
        self._position = how.start(self._log)  # where it is while a start by time or id is looked for
        self.go_to(start)
        if not self.is_at_end:
            self._pieces()

    @property
    def partition(self) -> int:
        return self._partition

    @property
    def position(self) -> int:
        """The offset at which the next read continues."""
        return self._position

    @property
    def cursor(self) -> Cursor:
        """The value to store in order to continue here later (C49)."""
        return Cursor.of(self._state, self._log, self._position)

    @property
    def settled(self) -> Cursor:
        """As `cursor`, but at the log end where nothing is left to be read, as rounds have removed the last records."""
        offset = self._position if self.has_more else max(self._position, self._log.log_end_offset)
        return Cursor.of(self._state, self._log, offset)

    @property
    def is_at_end(self) -> bool:
        """Whether this version was read to its end."""
        return self._position >= self._log.log_end_offset

    @property
    def has_more(self) -> bool:
        """Whether this version has a record at or after the position (C36), from metadata alone."""
        last = self._how.last_record(self._log)
        return last is not None and last.offset >= self._position

    def go_to(self, start: From) -> None:
        """Moves the position. Raises `OffsetOutOfRangeError`, or `LogTruncatedError` for an invalid cursor."""
        self._position = self._resolve(start)

    def records(self) -> Iterator[Record]:
        """The records of this version from the position on. It ends early if the position is moved meanwhile."""
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
        """The same records as stored batches; once a batch is returned, the position is after it."""
        log = self._log
        for batch in self._stored():
            self._position = behind = batch.end_offset
            yield batch
            if self._position != behind:
                return
        self._end(log)

    def tables(self) -> Iterator[Any]:
        """As `batches`, as `pyarrow.Table`s: converted before the position counts them as returned."""
        log = self._log
        for batch in self._stored():
            table = batch.to_arrow()
            self._position = behind = batch.end_offset
            yield table
            if self._position != behind:
                return
        self._end(log)

    def last_record_of(self, newest: TopicState) -> LastRecord | None:
        """The last record of that version (C36). Raises `LogTruncatedError`."""
        self._check_still_there(newest)
        return self._how.last_record(newest.log(self._partition))

    def last_record(self) -> LastRecord | None:
        """The last record of this version (C36)."""
        return self._how.last_record(self._log)

    def last_position(self, newest: TopicState | None) -> MessagePosition:
        """The position of the last message of that version, None: of this one (C52). Raises `LogTruncatedError`."""
        if newest is not None:
            self._check_still_there(newest)
        return last_position(self._warehouse, newest or self._state, self._partition, self._how)

    def advance(self, newest: OpenVersion) -> bool:
        """Moves to that version at the same offset; False if it is this one. Raises `LogTruncatedError`."""
        if self._is_open(newest.state):
            return False
        self._check_still_there(newest.state)
        there_is_more = self._position < newest.state.log(self._partition).log_end_offset
        # First, so that it remains in its version where that one cannot be read.
        self._hold(newest, newest.pieces(self._partition) if there_is_more else None)
        return True

    def _hold(self, version: OpenVersion, pieces: tuple[Piece, ...] | None) -> None:
        """Moves to a version. Without `pieces` its manifests are read once there is something to read in it."""
        # Set together: with the new log end and the old segments, records would be skipped.
        self._version, self._known = version, pieces
        self._state, self._log = version.state, version.state.log(self._partition)

    def _pieces(self) -> tuple[Piece, ...]:
        if self._known is None:
            self._known = self._version.pieces(self._partition)
        return self._known

    def _is_open(self, newest: TopicState) -> bool:
        """By number and by the log's commits: a restored catalog gives the numbers of versions a second time."""
        if (newest.identity, newest.version) != (self._state.identity, self._state.version):
            return False
        return self._partition in newest.partitions and newest.log(self._partition).run_ids == self._log.run_ids

    def _end(self, log: LogState) -> None:
        """Moves the position to the log end once all segments of a version have been read."""
        if self._log is log:  # else a call meanwhile has advanced to another version
            self._position = max(self._position, log.log_end_offset)

    @property
    def _id(self) -> LogId:
        return LogId(self._state.name, self._partition)

    def _resolve(self, start: From) -> int:
        match start:
            case Cursor(offset=offset):
                start.check_is_of(self._id)
                nearest = min(max(offset, self._how.start(self._log)), self._log.log_end_offset)
                self._check(start, self._state, f"start at offset {nearest} to continue anyway, or at earliest")
                return offset
            case "earliest":
                return self._how.start(self._log)
            case "latest":
                return self._log.log_end_offset
            case AtTime(timestamp_ms):
                return self._at_time(timestamp_ms)
            case MessageId():
                return self._at_id(start)
            case MessagePosition():
                return self._at_id(start.id)
            case _:
                return checked_offset(self._id, self._how.start(self._log), self._log.log_end_offset, start)

    def _at_time(self, timestamp_ms: int) -> int:
        for piece in self._pieces():
            if piece.segment.max_timestamp_ms < timestamp_ms:
                continue
            for batch in self._read(piece, self._how.start(self._log)):
                offset = batch.offset_at(timestamp_ms)
                if offset is not None:
                    return offset
        return self._log.log_end_offset

    def _at_id(self, sought: MessageId) -> int:
        """The offset of the record with this id, or of the next that is left (C52). Reads one segment, rarely two."""
        check_has_ids(self._state)
        if sought.ledger < 0:
            return self._how.start(self._log)
        if sought.is_end:
            return self._log.log_end_offset
        reached = self._log.copied_to
        if reached is None or sought.place > reached.place:
            raise OffsetOutOfRangeError(
                f"{self._id}: message id {sought} was not copied yet: the last copied one is {reached or 'none'}",
                hint="start at earliest, at latest, or at an id that was copied",
            )
        for piece in self._pieces():
            facts = piece.segment.envelopes
            if facts is None or not facts.may_reach(sought):
                continue
            for batch in self._read(piece, self._how.start(self._log)):
                offset = batch.offset_of(sought)
                if offset is not None:
                    return offset
        return self._log.log_end_offset

    def _stored(self) -> Iterator[Batch]:
        for piece in self._pieces():
            if piece.segment.end_offset > self._position:
                yield from self._read(piece, self._position)

    def _read(self, piece: Piece, start_offset: int) -> Iterator[Batch]:
        try:
            yield from self._warehouse.files.read(piece.segment, max(start_offset, piece.start_offset))
        except DamagedError as error:
            hint = f"open a new reader; this one was at {self._position}"
            swept = swept_error(self._warehouse, self._id, self._state.version, [piece.segment], hint)
            raise swept or error from error

    def _check_still_there(self, newest: TopicState) -> None:
        """Raises `LogTruncatedError` if the log is another one, or the reader would miss deletes (C7, C49)."""
        hint = "open a new reader, at earliest or at an offset of the log"
        if newest.identity == self._state.identity and newest.version < self._state.version:
            raise lost_error(self._id, self.cursor, Restored(), hint)
        self._check(self.cursor, newest, hint)

    def _check(self, cursor: Cursor, state: TopicState, hint: str) -> None:
        there, compacted = self._partition in state.partitions, self._how.compacted
        match continuation(cursor, state, state.log(self._partition), compacted=compacted) if there else Gone():
            case Continues():
                return
            case lost:
                raise lost_error(self._id, cursor, lost, hint)


def swept_error(
    warehouse: Warehouse, log: LogId, version: int, segments: Iterable[Segment], hint: str
) -> VersionSweptError | None:
    """The error for files that are gone as their version was swept; None if all are there, or kept ones need them.

    C7, C8.
    """
    named = warehouse.store.named_files(log.topic)
    gone = warehouse.files.missing([path for path in sizes_of(segments) if path not in named])
    if not gone:
        return None
    return VersionSweptError(
        f"{log}: version {version}, which is being read, was swept: {gone[0]} no longer exists", hint=hint
    )


def latest(
    warehouse: Warehouse,
    state: TopicState,
    partition: int,
    segments: Sequence[Segment],
    rules: SurvivorRules,
    key: bytes | None,
) -> Iterator[Batch]:
    """What `SegmentFiles.latest` gives of segments of `state`, whose files may be swept meanwhile (C7).

    Raises `DamagedError` or `VersionSweptError`.
    """
    try:
        yield from warehouse.files.latest(segments, rules, key)
    except DamagedError as error:
        hint = "read the newest version, which needs other files"
        raise swept_error(warehouse, LogId(state.name, partition), state.version, segments, hint) or error from error
