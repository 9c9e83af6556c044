"""Copies the positions of a source's groups to the groups of its replica (C68).

    fence of the replica ─► positions of the source ─► `mirror`, which loads the source after both ─► positions stored

So the replica has the versions that the positions were committed in, when they are stored there: no reader finds itself
beyond the end, or has read what a round of a later version left. Between the two, positions wait in memory: those of
one topic, some 0.5 KB each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lithify.model.groups.copies import CopiedPositions, at_replica
from lithify.model.groups.positions import Position
from lithify.model.names import TopicName
from lithify.ports.groups import NEVER_COPIED, Groups
from lithify.ports.store import Warehouse


@dataclass(frozen=True, slots=True)
class ReadPositions:
    """The positions of the source in a topic, and the fence of its replica, both before the copy they belong to."""

    topic: TopicName
    fence: int
    positions: Sequence[Position]


def read_positions(source: Groups, target: Groups | None, topic: TopicName) -> ReadPositions:
    """What a copy begins with; `target` is None while it is no warehouse yet. Raises `CoordinationError`."""
    fence = NEVER_COPIED if target is None else target.copies.fence(topic)  # first: see `PositionCopies`
    return ReadPositions(topic, fence, source.positions(topic=topic))


def store_positions(read: ReadPositions, target: Warehouse, groups: Groups) -> CopiedPositions:
    """Stores them, once a copy that began later has ended.

    Not in a topic that is no replica any more: its groups go their own ways. Raises `CoordinationError`,
    `UnknownTopicError` or `WarehouseError`.
    """
    state = target.store.load(read.topic)
    if state.replica is None:
        return CopiedPositions()
    source = state.replica.identity
    return groups.copies.copy(read.topic, [at_replica(p, source, state) for p in read.positions], read.fence)
