"""One version of a topic, opened for reading: its manifests are read once for all logs that are read of it.

version 7 ── segments of logs 0, 1, 2 ──► reader of log 0, of log 1, of log 2        one read, not three
version 8 ── segments of logs 0, 1, 2 ──► the same readers, when they advance (C7)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lithify.model.segment import Segment, by_partition
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.reading.pieces import Piece, Reading, pieces_of


class OpenVersion:
    """What there is to read in some logs of `state`; nothing is read before the first of them asks."""

    def __init__(self, warehouse: Warehouse, state: TopicState, partitions: Collection[int], how: Reading) -> None:
        self.state = state
        self._warehouse, self._partitions, self._how = warehouse, partitions, how
        self._segments: Mapping[int, tuple[Segment, ...]] | None = None
        self._view: Mapping[int, tuple[Segment, ...]] = {}

    def pieces(self, partition: int) -> tuple[Piece, ...]:
        """What is read of a log, in offset order. Raises what `LogStore.segments` and `LogStore.view` raise."""
        if self._segments is None:
            viewed = [p for p in self._partitions if self._how.reads_view(self.state.log(p))]
            store = self._warehouse.store
            self._view = by_partition(store.view(self.state, viewed) if viewed else ())
            self._segments = by_partition(store.segments(self.state, sorted(self._partitions)))
        segments, view = self._segments.get(partition, ()), self._view.get(partition, ())
        return pieces_of(self.state.log(partition), segments, view, self._how)
