"""How far a user of Kafka and the lake has taken each log, and whether they can go on in the lake (C7, C49)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from lithify.errors import LithifyError
from lithify.model.cursor import Cursor
from lithify.model.log import LogState, TopicState
from lithify.model.names import LogId, TopicName
from lithify.ports.store import Warehouse
from lithify.reading.continuation import BeyondEnd, Continues, advanced, continuation, lost_error


def first_cursor(state: TopicState, partition: int) -> Cursor:
    """Before the first record of a version."""
    log = log_of(state, partition)
    return Cursor.of(state, log, log.compacted_start)


def check_continues(cursor: Cursor, state: TopicState, partition: int) -> None:
    """Raises `LogTruncatedError` where going on from a cursor would miss something."""
    match continuation(cursor, state, log_of(state, partition), compacted=True):
        case Continues() | BeyondEnd():  # what the lake does not have yet is in Kafka
            return
        case lost:
            raise lost_error(LogId(state.name, partition), cursor, lost, "start afresh, from the beginning")


def log_of(state: TopicState, partition: int) -> LogState:
    """The log of that partition; an empty one where only Kafka has the partition so far."""
    return state.log(partition) if partition in state.partitions else LogState(partition)


class Cursors:
    """By partition, the cursor of the user of a consumer, and the version of the log that was seen last."""

    def __init__(self, state: TopicState, stored: Mapping[int, Cursor], partitions: Iterable[int]) -> None:
        """Raises `LogTruncatedError` where a stored cursor cannot be gone on from."""
        self._cursors: dict[int, Cursor] = {}
        self._seen: dict[int, LogState] = {}
        for partition in partitions:
            self.add(partition, state, stored.get(partition))

    def __iter__(self) -> Iterator[int]:
        return iter(self._cursors)

    def add(self, partition: int, state: TopicState, stored: Cursor | None = None) -> None:
        """Goes on in a partition, or begins with it."""
        cursor = first_cursor(state, partition) if stored is None else stored
        check_continues(cursor, state, partition)
        self._cursors[partition] = cursor
        self._seen[partition] = log_of(state, partition)

    def offset(self, partition: int) -> int:
        return self._cursors[partition].offset

    def see(self, partition: int, state: TopicState, settled: int, read: int) -> None:
        """The log is at that version now. Raises `LogTruncatedError` where reading cannot go on in it."""
        cursor = advanced(self._cursors[partition], self._seen[partition], settled)
        check_continues(advanced(cursor, self._seen[partition], read), state, partition)
        self._cursors[partition] = cursor
        self._seen[partition] = log_of(state, partition)

    def see_all(self, warehouse: Warehouse, name: TopicName, settled: Mapping[int, int]) -> None:
        """Looks at the newest version, if it can be had: what is live does not depend on it."""
        with suppress(LithifyError):
            state = warehouse.store.load(name)
            for partition in self._cursors:
                self.see(partition, state, settled[partition], settled[partition])

    def settled(self, offsets: Mapping[int, int]) -> dict[int, Cursor]:
        """What is to be stored for a user who came to these offsets."""
        return {p: advanced(cursor, self._seen[p], offsets[p]) for p, cursor in self._cursors.items()}
