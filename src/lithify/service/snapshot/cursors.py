"""What a consumer of a copied topic reads in the lake (C33): from which cursors, and if it can continue (C7, C49)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice

from lithify.errors import LithifyError
from lithify.model.cursor import Cursor
from lithify.model.names import LogId
from lithify.model.record import Record
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.reading.continuation import BeyondEnd, Continues, advanced, continuation, lost_error
from lithify.rules.reading.pieces import Reading
from lithify.service.documents import source_of
from lithify.service.read.fetch import open_log
from lithify.service.snapshot.collector import collector_at_rest
from lithify.service.snapshot.newest import Newest

TAKEN_AT_ONCE = 8192
"""Records that are in memory as Python objects at a time, at most."""


def first_cursor(state: TopicState, partition: int) -> Cursor:
    """The cursor at the first compacted record of a version."""
    log = log_of(state, partition)
    return Cursor.of(state, log, log.compacted_start)


def check_continues(cursor: Cursor, state: TopicState, partition: int) -> None:
    """Raises `LogTruncatedError` if a consumer cannot continue at its cursor."""
    match continuation(cursor, state, log_of(state, partition), compacted=True):
        case Continues() | BeyondEnd():  # the cluster has what was not copied into the lake yet
            return
        case lost:
            raise lost_error(LogId(state.name, partition), cursor, lost, "start again, from the beginning")


def log_of(state: TopicState, partition: int) -> LogState:
    """The log of that partition; an empty one where only the cluster has the partition so far."""
    return state.log(partition) if partition in state.partitions else LogState(partition)


def compacted_records(
    warehouse: Warehouse, state: TopicState, partition: int, offset: int
) -> Iterator[Sequence[Record]]:
    """The records of a log from an offset on, up to the end of this version, in sequences."""
    log = log_of(state, partition)
    if offset < log.log_end_offset:
        start = max(offset, log.compacted_start)
        for batch in open_log(warehouse, state, partition, start, Reading(compacted=True)).poll():
            records = batch.records()
            while some := _next(records):
                yield some


def _next(records: Iterator[Record]) -> Sequence[Record]:
    with collector_at_rest():
        return tuple(islice(records, TAKEN_AT_ONCE))


def copied_from(warehouse: Warehouse, state: TopicState, source_topic: str) -> str:
    """The id of the topic in the cluster that this one was copied from; empty if that is not known."""
    copied = source_of(warehouse.store, state)
    return copied.topic_id if copied is not None and copied.name == source_topic else ""


class Cursors:
    """By partition, the cursor of a consumer, and the version of the log that it loaded last."""

    def __init__(self, state: TopicState, stored: Mapping[int, Cursor], partitions: Iterable[int]) -> None:
        """Raises `LogTruncatedError` if a consumer cannot continue at a stored cursor."""
        self._cursors: dict[int, Cursor] = {}
        self._seen: dict[int, tuple[LogState, int]] = {}
        """The log, and the version of its topic."""
        for partition in partitions:
            self.add(partition, state, stored.get(partition))

    def __iter__(self) -> Iterator[int]:
        return iter(self._cursors)

    def add(self, partition: int, state: TopicState, stored: Cursor | None = None) -> None:
        """Adds a partition, at its stored cursor or at the start."""
        cursor = first_cursor(state, partition) if stored is None else stored
        check_continues(cursor, state, partition)
        self._cursors[partition] = cursor
        self._seen[partition] = log_of(state, partition), state.version

    def offset(self, partition: int) -> int:
        return self._cursors[partition].offset

    def check_at_end(self, partition: int, state: TopicState, read: int) -> None:
        """Raises `LogTruncatedError` if a log ends where the consumer has read to, or before, and it cannot continue
        there: the log was cut, recreated or restored. Nobody would look, as there is nothing to read.
        """
        if self._seen[partition][0].log_end_offset == read >= log_of(state, partition).log_end_offset:
            self._check(partition, state, read)

    def see(self, partition: int, state: TopicState, settled: int, read: int) -> None:
        """Takes a newer version of the log. Raises `LogTruncatedError` if the consumer cannot continue in it."""
        self._check(partition, state, read)
        self._cursors[partition] = advanced(self._cursors[partition], *self._seen[partition], settled)
        self._seen[partition] = log_of(state, partition), state.version

    def _check(self, partition: int, state: TopicState, read: int) -> None:
        check_continues(advanced(self._cursors[partition], *self._seen[partition], read), state, partition)

    def see_all(self, newest: Newest, settled: Mapping[int, int]) -> None:
        """Loads the newest version. A failure is ignored: records come from the cluster without the lake."""
        with suppress(LithifyError):
            state = newest.load()
            for partition, offset in settled.items():
                self.see(partition, state, offset, offset)

    def settled(self, offsets: Mapping[int, int]) -> dict[int, Cursor]:
        """The cursors to store once the user has processed all records below these offsets."""
        return {p: advanced(self._cursors[p], *self._seen[p], offset) for p, offset in offsets.items()}
