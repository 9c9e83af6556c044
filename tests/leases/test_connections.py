"""How many connections one process has to the database of leases, positions and replicas."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, create_engine, text

from leases.conftest import SHARED
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.groups_sql import open_groups
from lithify.coordination.leases.lease_transactions import Transactions, shared_database
from lithify.errors import CoordinationError
from lithify.model.formats.warehouse_scope import WarehouseScope
from support.servers.postgres import Postgres
from support.servers.tcp_proxy import a_proxy, wait_until

READERS = 40
POOLED = 15
"""The most connections of one engine of SQLAlchemy."""


def connections(server: Postgres, database: str) -> int:
    ((count,),) = server.run(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'")
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_those_who_name_the_same_database_share_its_connections(url: str) -> None:
    catalogs = create_engine(url.replace("postgresql://", "postgresql+psycopg2://"))
    first, second = shared_database(url, None), shared_database(url, None)
    assert first is second
    assert shared_database(None, catalogs) is shared_database(None, catalogs)
    catalogs.dispose()


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_no_engine_is_made_for_a_database_that_is_in_use(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway asks several times a second, and an engine that is left remains until the garbage collector looks."""
    catalogs = create_engine(url.replace("postgresql://", "postgresql+psycopg2://"))
    named, beside = shared_database(url, None), shared_database(None, catalogs)
    monkeypatch.setattr("lithify.coordination.leases.database.create_engine", None)
    assert shared_database(url, None) is named
    assert shared_database(None, catalogs) is beside
    catalogs.dispose()


def test_many_readers_of_groups_take_no_more_connections_than_one_pool_has(server: Postgres, database: str) -> None:
    readers = [open_groups(server.uri(database), None, WarehouseScope.of("scope")) for _ in range(READERS)]
    with ThreadPoolExecutor(READERS) as pool:
        assert set(pool.map(lambda reader: reader.positions("g"), readers)) == {()}
    assert 0 < connections(server, database) <= POOLED


def test_connections_are_closed_with_the_last_of_those_who_use_them(server: Postgres, database: str) -> None:
    first, second = (open_groups(server.uri(database), None, WarehouseScope.of("scope")) for _ in range(2))
    assert (first.positions(), second.positions()) == ((), ())
    del first
    assert connections(server, database) > 0
    del second
    wait_until(lambda: connections(server, database) == 0, "connections stay open")


def test_connections_beside_a_catalog_stay_open_as_long_as_the_catalog(server: Postgres, database: str) -> None:
    catalogs = create_engine(server.uri(database))
    for _ in range(3):
        transactions = shared_database(None, catalogs)
        assert transactions is not None
        assert transactions.done(lambda connection: connection.execute(text("SELECT 1")).scalar()) == 1
        del transactions
        assert connections(server, database) == 1
    del catalogs
    gc.collect()  # an engine is part of a cycle
    wait_until(lambda: connections(server, database) == 0, "connections stay open")


def test_a_connection_lost_inside_a_transaction_is_reported_as_that(server: Postgres, database: str) -> None:
    """Its rollback asks nothing of the connection that is gone."""
    with a_proxy("127.0.0.1", server.port) as wire:
        transactions = Transactions(engine_at(server.uri(database, wire.port)))

        def loses(connection: Connection) -> None:
            connection.execute(text("SELECT 1"))
            wire.drop()
            connection.execute(text("SELECT 2"))

        with pytest.raises(CoordinationError) as lost:
            transactions.done(loses)
        assert "reconnect" not in str(lost.value) and "closed the connection" in str(lost.value)
        assert transactions.done(lambda connection: connection.execute(text("SELECT 3")).scalar()) == 3
