"""The port of consumer groups: the positions of those of one warehouse, and the leases of their members (C58).

    positions   group    log        cursor   committed_ms
    leases      group/default/orders/0@scope   owner   beats       as `ports/leases.py` describes them

Both are in one database, since a position is written only in a transaction that finds the lease of its
partition with the same owner. So a member that stalled, while another one took its partition over, changes no
position when it continues, whatever it believes to hold.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from lithify.model.groups.positions import Position
from lithify.model.names import LogId, TopicName
from lithify.ports.leases import Coordination


class Groups(Protocol):
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
        """All positions, or those of a group or topic, by group, topic and partition. Creates nothing."""
        ...

    def commit(self, positions: Sequence[Position], owner: str) -> frozenset[LogId]:
        """Stores positions of one group in one transaction, if `owner` holds the leases of all their logs.

        Else it stores none, and returns the logs whose leases others hold, or none. After an error it is
        unknown whether they were stored, but it is all or none.
        """
        ...

    def delete(self, group: str, logs: Collection[LogId], owner: str) -> frozenset[LogId]:
        """Deletes positions, on the same condition and with the same result."""
        ...
