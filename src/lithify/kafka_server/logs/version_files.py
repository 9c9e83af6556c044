"""The files of one version of a topic, and what is kept of their content.

version 7 ── segments of logs 0, 1 ─────► their batches, their times        each log's manifests are read once
version 8 ── segments of log 1 alone ───► log 0 has had no commit since: it has the segments of version 7
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from lithify.errors import DamagedError, UnknownVersionError, VersionSweptError
from lithify.kafka_server.logs.parts import Parts
from lithify.kafka_server.logs.times import TimesOfSegments
from lithify.model.names import LogId
from lithify.model.segment import Segment, by_partition
from lithify.model.topic.state import TopicState
from lithify.ports.store import LogStore
from lithify.rules.reading.pieces import Piece, Reading, pieces_of

Segments = tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept in memory of the content of segments, of all topics."""

    parts: Parts
    times: TimesOfSegments


@dataclass(slots=True)
class VersionFiles:
    """Of the version that `state` is. Several threads may use it.

    `is_replaced` asks the catalog whether there is a later one.
    """

    store: LogStore
    state: TopicState
    kept: Kept
    is_replaced: Callable[[], bool]
    _known: dict[int, Segments] = field(default_factory=dict)
    """By partition, in offset order."""
    _pieces: dict[tuple[int, Reading], tuple[Piece, ...]] = field(default_factory=dict)
    """What clients read of them, and of views."""
    _expected: frozenset[int] = frozenset()
    """The logs that were read in the version before."""
    _lock: Lock = field(default_factory=Lock)

    def pieces(self, partition: int, how: Reading) -> tuple[Piece, ...]:
        """What is read of a log, in offset order. Raises what `LogStore.segments` and `LogStore.view` raise."""
        with self._lock:
            if (known := self._pieces.get((partition, how))) is not None:
                return known
            if partition not in self._known:
                self._known |= self._read(sorted({partition} | (self._expected - self._known.keys())), partition)
            log = self.state.log(partition)
            view = tuple(self.store.view(self.state, [partition])) if how.reads_view(log) else ()
            return self._pieces.setdefault((partition, how), pieces_of(log, self._known[partition], view, how))

    def continue_from(self, before: VersionFiles) -> None:
        """Takes over what is the same in an earlier version of the topic, before anything was read in this one."""
        with before._lock:
            known, pieces = dict(before._known), dict(before._pieces)
        then, now = before.state, self.state
        if then.identity == now.identity:
            same = (p for p in known if p in now.partitions and then.log(p) == now.log(p))
            self._known = {partition: known[partition] for partition in same}
            self._pieces = {at: some for at, some in pieces.items() if at[0] in self._known}
            self._expected = frozenset(partition for partition in known if partition in now.partitions)

    @contextmanager
    def sweeps_told(self, log: LogId) -> Iterator[None]:
        """Turns the error for missing files into a `VersionSweptError` where a later version needs others."""
        try:
            yield
        except (DamagedError, UnknownVersionError) as error:
            if not self.is_replaced():
                raise
            raise VersionSweptError(
                f"{log}: version {self.state.version}, which is being read, was replaced, and may have been swept",
                hint="read the newest version, which needs other files",
            ) from error

    def _read(self, partitions: list[int], asked: int) -> dict[int, Segments]:
        try:
            found = by_partition(self.store.segments(self.state, partitions))
        except DamagedError:
            if partitions == [asked]:
                raise
            return self._read([asked], asked)  # the manifests of another log may be damaged
        return {partition: found.get(partition, ()) for partition in partitions}
