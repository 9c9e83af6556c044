"""The positions of groups, from a database that is opened when a topic names groups, and not before."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import Lock

from lithify.model.groups.positions import Position
from lithify.model.names import TopicName
from lithify.ports.groups import GroupPositions


class GroupPositionsOf:
    """`GroupPositions` of what `open_groups` opens; it is tried again after an error. Several threads may ask."""

    def __init__(self, open_groups: Callable[[], GroupPositions]) -> None:
        self._open = open_groups
        self._opened: GroupPositions | None = None
        self._lock = Lock()

    def positions_of(self, groups: Collection[str], topic: TopicName | None = None) -> tuple[Position, ...]:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
        return self._opened.positions_of(groups, topic)
