"""Leases of the gateways that serve Kafka's clients, in the database that they share.

lithify_kafka_gateways     name (primary key): SCOPE/HOST:PORT/OWNER     owner   beats
"""

from __future__ import annotations

from sqlalchemy import Engine

from lithify.coordination.leases.lease_transactions import required_database
from lithify.coordination.leases.sql_coordination import SqlCoordination, table_of_leases
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.ports.leases import Coordination

GATEWAYS = table_of_leases("lithify_kafka_gateways")


def open_kafka_gateways(url: str | None, catalogs: Engine | None, scope: WarehouseScope) -> Coordination:
    """The leases, in the database at `url`, else in the catalog's own; it connects, and makes their table.

    Raises `RefusedError` if there is no database that processes share, or `CoordinationError`.
    """
    need = "gateways for Kafka's clients need an SQL database that they share"
    return SqlCoordination(required_database(url, catalogs, scope.where, need), table=GATEWAYS)
