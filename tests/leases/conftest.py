"""Each place where leases can be, and a PostgreSQL behind a wire that can be cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leases.places import LeasePlace
from lithify.coordination.leases import database as databases
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.groups_sql import SqlGroups
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.coordination.leases.sql_coordination import open_coordination
from lithify.ports.groups import Groups
from lithify.testing.memory_groups import MemoryGroups
from lithify.waits import sql
from support.servers.postgres import Postgres, a_postgres
from support.servers.tcp_proxy import TcpProxy, a_proxy

SHARED = ("sqlite", "postgres")
Open = Callable[[str], Groups]


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    with a_postgres() as server:
        yield server


@pytest.fixture
def database(server: Postgres) -> Iterator[str]:
    """An empty database, by name."""
    name = server.make_database()
    yield name
    server.drop_database(name)


@pytest.fixture(params=("memory", *SHARED))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the groups of a warehouse in the same database once more, as another process would."""
    if request.param == "memory":
        known: dict[str, Groups] = {}
        return lambda scope: known.setdefault(scope, MemoryGroups(scope))
    url = f"sqlite:///{tmp_path}/groups.db"
    if request.param == "postgres":
        url = request.getfixturevalue("server").uri(request.getfixturevalue("database"))
    return lambda scope: SqlGroups(Transactions(engine_at(url)), scope)


@pytest.fixture
def wire(server: Postgres) -> Iterator[TcpProxy]:
    with a_proxy("127.0.0.1", server.port) as wire:
        yield wire


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without a table; for `indirect` parameters out of `SHARED`."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/leases.db"
    server: Postgres = request.getfixturevalue("server")
    return server.uri(request.getfixturevalue("database"))


@pytest.fixture(params=("memory", *SHARED))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> LeasePlace:
    if request.param == "memory":
        return LeasePlace(None, MemoryCoordination())
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path}/leases.db"
    else:
        url = request.getfixturevalue("server").uri(request.getfixturevalue("database"))
    return LeasePlace(url, open_coordination(url))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits for databases are short."""
    monkeypatch.setattr(databases, "CONNECT_S", 2)  # libpq's least
    monkeypatch.setattr(databases, "ANSWER_S", 0.5)
    monkeypatch.setattr(sql, "PING_S", 0.5)
    monkeypatch.setattr(databases, "STATEMENT_S", 1)
    monkeypatch.setattr(databases, "BUSY_S", 0.2)
