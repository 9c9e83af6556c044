"""Where a warehouse has what several processes share: replicas, standing jobs, tokens, keys of appends, gateways."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lithify.api.wiring import COORDINATION_VARIABLE
from lithify.api.wiring.scopes import database_of, existing_catalog, scope_of, source_of
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.ports.store import Warehouse

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from lithify.ports.leases import Coordination


def shared_place(
    warehouse: Warehouse, url: str | None, *, makes: bool = False, creates: bool = False
) -> tuple[str | None, Engine | None, WarehouseScope]:
    """The database that is named, else the catalog's own, and the scope of the warehouse there.

    The default of `url` is `$LITHIFY_COORDINATION_URL`. Who is to store something `makes` the identity, and `creates`
    the warehouse if it may be the first to use it. Raises `WarehouseError`, such as if there is no warehouse.
    """
    catalog = source_of(warehouse).created() if creates else existing_catalog(warehouse)
    url = url or os.environ.get(COORDINATION_VARIABLE) or None
    return url, database_of(catalog), scope_of(warehouse, makes=makes)


def kafka_gateways_of(warehouse: Warehouse, url: str | None) -> Coordination:
    """The leases of the gateways that serve Kafka's clients. Raises `RefusedError` or `CoordinationError`."""
    if warehouse.doubles is not None:
        from lithify.coordination.leases.memory import MemoryCoordination

        return MemoryCoordination()
    from lithify.coordination.leases.gateways.kafka_sql import open_kafka_gateways

    return open_kafka_gateways(*shared_place(warehouse, url, makes=True, creates=True))
