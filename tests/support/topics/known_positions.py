"""How far groups have read a topic, as a test says: `GroupPositions` without a database, leases and members."""

from __future__ import annotations

from collections.abc import Collection

from lithify.model.cursor import Cursor
from lithify.model.groups.positions import Position
from lithify.model.names import LogId, TopicName
from lithify.model.topic.state import TopicState


class KnownPositions:
    """Positions by group and log; the latest counts."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, LogId], Position] = {}

    def commit(self, state: TopicState, partition: int, group: str, offset: int, now_ms: int) -> None:
        """A group has read a log of this version up to an offset."""
        log = LogId(state.name, partition)
        cursor = Cursor.of(state, state.log(partition), offset)
        self.known[group, log] = Position(group, log, cursor, compacted=True, committed_ms=now_ms)

    def positions_of(self, groups: Collection[str], topic: TopicName | None = None) -> tuple[Position, ...]:
        found = (self.known[key] for key in sorted(self.known))
        return tuple(p for p in found if p.group in groups and topic in (None, p.log.topic))
