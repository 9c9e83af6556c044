"""Copies the positions of a source's groups to the groups of its replica (C68).

    source's version ─► fence of the replica ─► positions of the source ─► source's version ─► copied ─► they are stored
          └──────────────── no round in between, else once more ─────────────────┘

So the replica has the versions that the positions were committed in, when they are stored there: no reader finds itself
beyond the end, or has read what a round of a later version left. And they are as new as the positions that the rounds
of this version have waited for (C61, C62). So a group that has read in time does not get an error at the replica.
Until they are stored, they wait in memory: the positions of one topic, some 0.5 KB each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lithify.errors import ConflictError
from lithify.model.groups.copies import CopiedPositions, at_replica
from lithify.model.groups.positions import Position
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.groups import NEVER_COPIED, Groups
from lithify.ports.store import LogStore, Warehouse

TURNS = 5
"""Tries to read positions while no round commits."""


@dataclass(frozen=True, slots=True)
class ReadPositions:
    """The positions of the source in a topic, and the fence of its replica, both before the copy they belong to."""

    topic: TopicName
    fence: int
    positions: Sequence[Position]


def read_positions(source: Groups, target: Groups | None, topic: TopicName) -> ReadPositions:
    """What a copy begins with; `target` is None while it is not a warehouse yet. Raises `CoordinationError`."""
    fence = NEVER_COPIED if target is None else target.copies.fence(topic)  # first: see `PositionCopies`
    return ReadPositions(topic, fence, source.positions(topic=topic))


def load_between(
    store: LogStore, before: TopicState, read: Callable[[], ReadPositions]
) -> tuple[TopicState, ReadPositions]:
    """The version to copy, and the positions that belong to it; `before` is the version as of now.

    Raises `CoordinationError`, `ConflictError` if rounds commit all the time, or what `load` raises.
    """
    for _ in range(TURNS):
        positions = read()
        after = store.load(before.name)
        if _rounds(after) == _rounds(before):
            return after, positions
        before = after
    raise ConflictError(
        f"{before.name}: rounds were committed while the positions of its groups were read, {TURNS} times in a row",
        hint="wait for the next copy, which reads them again",
    )


def store_positions(read: ReadPositions, target: Warehouse, groups: Groups) -> CopiedPositions:
    """Stores them, once the copy of their version has ended.

    It stores nothing in a topic that is not a replica any more: its groups continue independently. Raises
    `CoordinationError`, `UnknownTopicError` or `WarehouseError`.
    """
    if read.fence == NEVER_COPIED:  # read before there was a warehouse, perhaps: from here on it can be raised
        groups.copies.fence(read.topic)
    state = target.store.load(read.topic)
    if state.replica is None:
        return CopiedPositions()
    source = state.replica.identity
    return groups.copies.copy(read.topic, [at_replica(p, source, state) for p in read.positions], read.fence)


def _rounds(state: TopicState) -> object:
    """What is another one once a round, or another commit that removes records, has used positions that are newer."""
    return state.identity, [(log.epoch, log.generation, log.log_start_offset) for log in state.logs]
