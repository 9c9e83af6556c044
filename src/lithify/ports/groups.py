"""The port of the consumer groups of one warehouse: their positions, and the leases of their members (C58).

    positions   group    log        cursor   committed_ms
    leases      group/default/orders/0@scope   owner   beats       as `ports/leases.py` describes them

Both are in one database, since a position is written only in a transaction that finds the lease of its
partition with the same owner. So a member that stalled, while another one took its partition over, changes no
position when it continues, whatever it believes to hold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from lithify.errors import RefusedError
from lithify.model.groups.copies import CopiedPositions
from lithify.model.groups.positions import Position
from lithify.model.names import LogId, TopicName
from lithify.ports.leases import Coordination


class GroupPositions(Protocol):
    """What rounds, looks and retention need of groups: how far those have read that a topic names (C61, C62)."""

    def positions_of(self, groups: Collection[str], topic: TopicName | None = None) -> tuple[Position, ...]:
        """The positions of these groups, in one topic or in all, by group, topic and partition. Creates nothing.

        Raises `CoordinationError` when the database cannot be used, or `RefusedError` if there is none.
        """
        ...


class NoGroups:
    """`GroupPositions` of a warehouse without a database of groups."""

    def positions_of(self, groups: Collection[str], topic: TopicName | None = None) -> tuple[Position, ...]:
        raise RefusedError(f"there is no database of consumer groups: {', '.join(sorted(groups))}")


PositionToken = tuple[int, ...]
"""A token of the positions in a topic: another one once one of them was committed, reset, added or deleted."""

NEVER_COPIED = 0
"""The fence of a topic into which no positions were copied yet."""


class PositionCopies(Protocol):
    """What replicas need of the groups of the warehouse that they are in: positions that were copied there (C68).

    A copy reads the fence first, then the positions of the source, then the source. It changes nothing if another
    one has written in between, or if a promotion, a reset or a deletion has raised the fence. So a copy that was frozen
    for long sets no position back, and restores none that was deleted.
    """

    def fence(self, topic: TopicName) -> int:
        """The number of the last copy into a topic, with which another one begins. Raises `CoordinationError`."""
        ...

    def raise_fence(self, topic: TopicName) -> None:
        """Copies into a topic that read the fence before change nothing any more. Raises `CoordinationError`."""
        ...

    def copy(self, topic: TopicName, positions: Sequence[Position], fence: int) -> CopiedPositions:
        """Stores the positions in a topic, and removes those that were copied earlier and are not among them.

        In transactions of a few hundred, each of which decides by what it finds (`model/groups/copies.py`). Raises
        `CoordinationError`, after which some may be stored; the next copy stores the rest.
        """
        ...


class Groups(GroupPositions, Protocol):
    """The groups of one warehouse. Every method raises `CoordinationError` when the database cannot be used."""

    @property
    def scope(self) -> str:
        """The warehouse, as names of leases have it."""
        ...

    @property
    def leases(self) -> Coordination:
        """The leases of members, of all warehouses that share the database."""
        ...

    def positions(self, group: str | None = None, topic: TopicName | None = None) -> tuple[Position, ...]:
        """All positions, or a group's or topic's, by group, topic and partition. Creates nothing."""
        ...

    def elsewhere(self, group: str, topic: TopicName, identity: str) -> tuple[str, ...]:
        """Other names of the warehouse under which the group has positions in a topic, which no reader finds there.

        `identity` is the topic's. Names that were taken over do not count (C73). Creates nothing.
        """
        ...

    def topics_elsewhere(self, group: str) -> frozenset[TopicName]:
        """In which topics a group of that name has positions under other names, of this warehouse or of others."""
        ...

    @property
    def copies(self) -> PositionCopies:
        """Positions of topics that are replicas."""
        ...

    def tokens(self) -> Mapping[TopicName, PositionToken]:
        """The token of every topic in which a group has a position: one query, of all positions. Creates nothing."""
        ...

    def commit(self, positions: Sequence[Position], owner: str) -> frozenset[LogId]:
        """Stores positions of one group in one transaction, if `owner` holds the leases of all their logs.

        Else it stores none, and returns the logs whose leases others hold, or none. After an error it is
        unknown whether they were stored, but it is all or none.
        """
        ...

    def reset(self, positions: Sequence[Position], owner: str) -> frozenset[LogId]:
        """The same for positions that a person chose: it raises the fence of their topics, in that transaction."""
        ...

    def delete(self, group: str, logs: Collection[LogId], owner: str) -> frozenset[LogId]:
        """Deletes positions, on the same condition and with the same result; it raises the fence as well.

        What the group has `elsewhere` in these topics is removed with them.
        """
        ...
