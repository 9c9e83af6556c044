"""The port of replicas: which ones a warehouse has, how far they are, and the leases of the daemons that copy.

    definitions   orders-to-backup   default/orders → s3 catalog `backup`, 20 MB/s
    progress      orders-to-backup   default/orders   replicating, version 812
    leases        replica/orders-to-backup/default/orders@scope   owner   beats   as `ports/leases.py` has them

All are in one database. Definitions are what people request; progress is what a daemon last noted, for other
daemons and for `status`. Whether a commit at the target is right depends on neither, nor on a lease: the gate
decides that, by what the target itself says that it is a replica of.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.replica_progress import TopicProgress
from lithify.ports.leases import Coordination


class Replicas(Protocol):
    """The replicas of one warehouse. Every method raises `CoordinationError` when the database cannot be used."""

    @property
    def scope(self) -> str:
        """The warehouse, as names of leases have it."""
        ...

    @property
    def leases(self) -> Coordination:
        """The leases of daemons, of all warehouses that share the database."""
        ...

    def definitions(self) -> tuple[ReplicaDefinition, ...]:
        """The replicas of this warehouse, by name. Creates nothing."""
        ...

    def into(self, target_scope: str) -> tuple[ReplicaDefinition, ...]:
        """The replicas of all warehouses that share the database and copy into that one, by warehouse and name."""
        ...

    def add(self, definition: ReplicaDefinition) -> bool:
        """Stores a new definition, without progress; False if its name is taken."""
        ...

    def replace(self, before: ReplicaDefinition, after: ReplicaDefinition) -> bool:
        """Replaces a definition by one of the same name, if it is still as it was `before`, or so already."""
        ...

    def remove(self, name: str) -> bool:
        """Forgets a definition and its progress; False if there is none."""
        ...

    def progress(self) -> tuple[TopicProgress, ...]:
        """What is noted of all topics of existing definitions, by replica and topic. Creates nothing."""
        ...

    def note(self, progress: Sequence[TopicProgress]) -> None:
        """Replaces what is noted of these topics, in one transaction; not of definitions that no longer exist."""
        ...

    def forget(self, replica: str, topics: Collection[TopicName]) -> None:
        """Removes what is noted of these topics."""
        ...
