"""What replicas of one warehouse work with: its topics, its definitions, and the way to other warehouses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lithify.errors import RefusedError
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.names import nearest
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.ports.groups import Groups
from lithify.ports.replicas import Replicas
from lithify.ports.store import Warehouse

OpenGroups = Callable[[], Groups]
"""Opens the groups of a warehouse. Raises `RefusedError` if it can have none, or `CoordinationError`."""


@dataclass(frozen=True, slots=True)
class Place:
    """A warehouse that was opened by the name that definitions store."""

    warehouse: Warehouse
    scope: WarehouseScope
    exists: Callable[[], bool]
    """Whether there is a warehouse already: a first topic makes one. Raises `WarehouseError`."""
    groups: OpenGroups
    """Its own groups, once there is a warehouse."""


OpenPlace = Callable[[str], Place]
"""Opens the warehouse at a place. Raises `WarehouseError`."""


@dataclass(frozen=True, slots=True)
class ReplicaContext:
    """The source is `warehouse`; its replicas are in other warehouses."""

    warehouse: Warehouse
    scope: WarehouseScope
    replicas: Replicas
    open_place: OpenPlace
    replicas_of: Callable[[Warehouse], Replicas]
    """The definitions of another warehouse. Raises `RefusedError` if it can have none."""
    groups: OpenGroups
    """The groups of the source."""

    def definition(self, name: str) -> ReplicaDefinition:
        """The definition of that name. Raises `RefusedError`, with the nearest one."""
        known = {definition.name: definition for definition in self.replicas.definitions()}
        if name not in known:
            there = (
                f"the replicas are {', '.join(sorted(known)[:10])}"
                if known
                else "define one with `lithify replica add TOPIC --to DIR`"
            )
            raise RefusedError(f"there is no replica {name}", hint=nearest(name, known, there))
        return known[name]
