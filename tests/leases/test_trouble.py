"""Databases that are down, restarted, slow or silent, answers that get lost, and URLs that cannot be used."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import astuple
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy import Column, Integer, MetaData, Table, create_engine

from leases.conftest import SHARED
from lithify.coordination.leases import database as databases
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.lease_transactions import Transactions, has_table, make_table
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.coordination.leases.sql_coordination import SqlCoordination, open_coordination
from lithify.errors import CoordinationError
from lithify.ports.leases import Lease
from lithify.waits import sql
from support.servers.postgres import PASSWORD, Postgres
from support.servers.tcp_proxy import TcpProxy, wait_until

ORDERS = Lease("orders", "alpha", 1)
BOUND_S = 20.0
"""Of an operation on an impatient database; the machine may be busy."""

OPERATIONS: dict[str, Callable[[SqlCoordination], object]] = {
    "leases": lambda coordination: coordination.leases(),
    "take": lambda coordination: coordination.take([Lease("new", "alpha", 2)], {}),
    "take over": lambda coordination: coordination.take([Lease("orders", "beta", 2)], {"orders": ORDERS}),
    "renew": lambda coordination: coordination.renew("alpha", 3),
    "release": lambda coordination: coordination.release("alpha", ["orders"]),
}
AFTER = {
    "leases": {ORDERS},
    "take": {ORDERS, Lease("new", "alpha", 2)},
    "take over": {Lease("orders", "beta", 2)},
    "renew": {Lease("orders", "alpha", 3)},
    "release": set(),
}
RESULTS = {
    "leases": (ORDERS,),
    "take": {"new"},
    "take over": {"orders"},
    "renew": {"orders"},
    "release": None,
}

each_operation = pytest.mark.parametrize("operation", OPERATIONS)


@pytest.fixture
def remote(impatient: None, server: Postgres, database: str, wire: TcpProxy) -> SqlCoordination:
    """In PostgreSQL, behind the wire, with the lease of one topic."""
    coordination = open_coordination(server.uri(database, wire.port))
    coordination.take([ORDERS], {})
    return coordination


@each_operation
@pytest.mark.parametrize("trouble", ["connection gone", "restarted", "cut before its commit", "answer lost"])
def test_an_operation_gets_through_on_another_connection(
    remote: SqlCoordination, server: Postgres, database: str, wire: TcpProxy, operation: str, trouble: str
) -> None:
    """One that never landed is done again; one whose answer got lost is settled."""

    def landed() -> bool:
        rows = server.run("SELECT name, owner, beats FROM lithify_leases", database)
        return set(rows) == {astuple(lease) for lease in AFTER[operation]}

    cut = [b"the connection"]  # or what holds the COMMIT, once it was cut
    match trouble:
        case "connection gone":
            wire.drop()
        case "restarted":
            server.stop_at_once()
            server.start()
        case _:
            cut = _cut_at_commit(wire, landed if trouble == "answer lost" else None)
    assert OPERATIONS[operation](remote) == RESULTS[operation]
    assert cut
    assert set(remote.leases()) == AFTER[operation]


@each_operation
def test_an_operation_says_when_the_database_is_down_and_works_again_when_it_is_back(
    remote: SqlCoordination, wire: TcpProxy, operation: str
) -> None:
    wire.cut()
    with pytest.raises(CoordinationError) as trouble:
        OPERATIONS[operation](remote)
    assert "***@127.0.0.1" in trouble.value.hint and "coordination_url=" in trouble.value.hint
    assert not _tells_password(trouble.value)
    wire.mend()
    assert OPERATIONS[operation](remote) == RESULTS[operation]


@each_operation
def test_an_operation_ends_although_the_database_never_answers(
    remote: SqlCoordination, wire: TcpProxy, operation: str
) -> None:
    wire.silent = True
    begun = time.monotonic()
    with pytest.raises(CoordinationError):
        OPERATIONS[operation](remote)
    assert time.monotonic() - begun < BOUND_S
    wire.mend()
    _settled(remote, wire)
    OPERATIONS[operation](remote)
    assert set(remote.leases()) == AFTER[operation]


def test_opening_ends_although_the_database_falls_silent_while_it_is_asked_who_it_is(
    impatient: None, server: Postgres, database: str, wire: TcpProxy
) -> None:
    def fall_silent(data: bytes) -> None:
        wire.silent = wire.silent or b"pg_catalog.version()" in data

    wire.on_request = fall_silent
    begun = time.monotonic()
    with pytest.raises(CoordinationError):
        open_coordination(server.uri(database, wire.port))
    assert wire.silent
    assert time.monotonic() - begun < BOUND_S


def test_a_slow_database_is_waited_for(server: Postgres, database: str, wire: TcpProxy) -> None:
    coordination = open_coordination(server.uri(database, wire.port))
    wire.delay_s = 0.1
    assert coordination.take([ORDERS], {}) == {"orders"}
    assert coordination.renew("alpha", 2) == {"orders"}


def test_a_row_that_another_program_keeps_locked_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch, server: Postgres, database: str
) -> None:
    monkeypatch.setattr(databases, "STATEMENT_S", 1)
    remote = open_coordination(server.uri(database))
    begun = time.monotonic()
    with closing(create_engine(server.uri(database)).connect()) as other:
        other.exec_driver_sql("LOCK TABLE lithify_leases")
        with pytest.raises(CoordinationError, match="timeout"):
            remote.renew("alpha", 2)
    assert time.monotonic() - begun < BOUND_S
    assert remote.renew("alpha", 2) == frozenset()


def test_an_owner_that_is_frozen_within_its_transaction_keeps_nobody_from_taking_its_leases(
    monkeypatch: pytest.MonkeyPatch, server: Postgres, database: str
) -> None:
    """Between its UPDATE and its COMMIT, as by SIGSTOP or on a machine that is cut off."""
    monkeypatch.setattr(databases, "STATEMENT_S", 1)
    monkeypatch.setattr(databases, "IDLE_S", 1)
    other = open_coordination(server.uri(database))
    other.take([ORDERS], {})
    monkeypatch.setattr(databases, "ANSWER_S", 600.0)  # a frozen one shuts no socket
    frozen = engine_at(server.uri(database)).connect()
    try:
        frozen.exec_driver_sql("UPDATE lithify_leases SET beats = 2")
        assert other.take([Lease("orders", "beta", 2)], {"orders": ORDERS}) == {"orders"}
    finally:
        frozen.invalidate()


def test_an_sqlite_file_that_another_program_keeps_locked_is_not_waited_for_without_end(
    impatient: None, tmp_path: Path
) -> None:
    coordination = open_coordination(f"sqlite:///{tmp_path}/leases.db")
    with closing(sqlite3.connect(tmp_path / "leases.db")) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CoordinationError, match=r"database is locked.*leases\.db"):
            coordination.take([ORDERS], {})
    assert coordination.take([ORDERS], {}) == {"orders"}


@each_operation
def test_a_file_that_is_lost_is_not_replaced_by_an_empty_one_and_is_used_once_it_is_back(
    tmp_path: Path, operation: str
) -> None:
    """An empty one would have no tokens, jobs and positions, which says that they were removed."""
    file, away = tmp_path / "leases.db", tmp_path / "away"
    coordination = open_coordination(f"sqlite:///{file}")
    coordination.take([ORDERS], {})
    file.rename(away)
    with pytest.raises(CoordinationError, match=r"leases\.db does not exist"):
        OPERATIONS[operation](coordination)
    assert not file.exists()
    away.rename(file)
    assert OPERATIONS[operation](coordination) == RESULTS[operation]


def test_a_user_that_may_not_make_tables_uses_the_one_that_is_there(server: Postgres, database: str) -> None:
    open_coordination(server.uri(database))
    server.run("CREATE ROLE clerk LOGIN PASSWORD 'open sesame'", database)
    server.run("GRANT SELECT, INSERT, UPDATE, DELETE ON lithify_leases TO clerk", database)
    try:
        coordination = open_coordination(server.uri(database).replace("//lithify:", "//clerk:"))
        assert coordination.take([ORDERS], {}) == {"orders"}
        assert coordination.renew("alpha", 2) == {"orders"}
    finally:
        server.run("DROP OWNED BY clerk", database)
        server.run("DROP ROLE clerk", database)


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_programs_that_make_the_same_tables_at_once_all_have_them(url: str) -> None:
    """PostgreSQL fails all but one of concurrent CREATEs: what a transaction made before goes with it, and again."""
    programs = [Transactions(engine_at(url)) for _ in range(4)]
    together = threading.Barrier(len(programs))

    def make(program: Transactions, own: list[Table]) -> None:
        together.wait(30)
        program.done(lambda connection: [make_table(connection, table) for table in own])

    for attempt in range(10):
        tables = [Table(f"made_{attempt}_{number}", MetaData(), Column("a", Integer)) for number in range(4)]
        orders = [tables[1:] if number % 2 else [tables[0], *tables[2:]] for number in range(len(programs))]
        with ThreadPoolExecutor(len(programs)) as pool:
            list(pool.map(make, programs, orders))
        assert programs[0].done(lambda connection: all(has_table(connection, table) for table in tables))  # noqa: B023


@pytest.mark.parametrize("statement", ["SAVEPOINT", "CREATE TABLE", "RELEASE"])
def test_a_connection_that_is_lost_while_a_table_is_made_is_an_outage(
    server: Postgres, database: str, wire: TcpProxy, statement: str
) -> None:
    """It was asked again whether the table is there, and that error hid the one that waiting mends (C50)."""
    program = Transactions(engine_at(server.uri(database, wire.port)))
    program.done(lambda _connection: None)  # it asks a new connection more
    wire.on_request = lambda data: wire.drop() if statement.encode() in data else None
    made = Table("made", MetaData(), Column("a", Integer))
    with pytest.raises(CoordinationError, match="server closed the connection") as trouble:
        program.done(lambda connection: make_table(connection, made))
    assert trouble.value.is_outage
    wire.on_request = None
    program.done(lambda connection: make_table(connection, made))


UNUSABLE = {
    "": "cannot be read",
    "nonsense": "cannot be read",
    "postgresql://lithify:s3cret@host:port/leases": "cannot be read",
    "postgresql://lithify:s3c@ret@host/leases": "two '@'",
    "sqlite://s3cret/leases.db": "cannot be read",
    "sqlite://": "in memory cannot be shared",
    "sqlite:///:memory:": "in memory cannot be shared",
    "mysql://lithify:s3cret@host/leases": "kind mysql",
    "postgresql+asyncpg://lithify:s3cret@host/leases": r"kind postgresql\+asyncpg",
    "postgresql://lithify:s3cret@127.0.0.1:1/leases?password=s3cret": "Connection refused",
    "postgresql://lithify:s3cret@nowhere.invalid/leases": "nowhere.invalid",
}


@pytest.mark.parametrize("url", UNUSABLE)
def test_a_url_that_cannot_be_used_is_refused_with_what_to_do(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "PATIENCE_S", 0.01)
    with pytest.raises(CoordinationError, match=UNUSABLE[url]) as trouble:
        open_coordination(url)
    assert trouble.value.hint
    assert "s3c" not in str(trouble.value)


def test_a_database_in_a_folder_that_cannot_be_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()  # and so no folder
    with pytest.raises(CoordinationError, match="unable to open database file") as trouble:
        open_coordination(f"sqlite:///{tmp_path}/file/leases.db")
    assert trouble.value.hint


def test_a_wrong_password_is_reported_without_it(server: Postgres, database: str) -> None:
    with pytest.raises(CoordinationError, match="password authentication failed") as trouble:
        open_coordination(server.uri(database, password="s3cret"))
    assert "s3cret" not in str(trouble.value)


def test_a_server_that_restarts_is_waited_for_at_the_first_connection_only(
    server: Postgres, database: str, wire: TcpProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Later a process may hold leases, which it then has to give up in time."""
    wire.cut()
    back = threading.Timer(0.5, wire.mend)
    back.start()
    opened = open_coordination(server.uri(database, wire.port))
    back.join()
    monkeypatch.setattr(sql, "PATIENCE_S", 10 * BOUND_S)
    wire.cut()
    with pytest.raises(CoordinationError):
        opened.leases()


def test_a_driver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg2", None)
    with pytest.raises(CoordinationError, match="psycopg2") as trouble:
        open_coordination("postgresql://lithify:s3cret@127.0.0.1:1/leases")
    assert "./scripts/setup postgres" in trouble.value.hint


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_the_database_of_a_catalog_holds_leases_for_all_that_open_it(url: str) -> None:
    first, second = (SqlCatalog("lake", uri=url, warehouse="file:///nowhere") for _ in range(2))
    with closing(first), closing(second):
        ours, theirs = open_coordination(None, first.engine), open_coordination(None, second.engine)
        assert ours.shared and theirs.shared
        assert ours.take([ORDERS], {}) == {"orders"}
        assert theirs.leases() == (ORDERS,)
        assert first.list_namespaces() == []


def test_the_database_of_a_catalog_in_memory_is_not_shared() -> None:
    coordination = open_coordination(None, create_engine("sqlite://"))
    assert isinstance(coordination, MemoryCoordination)
    assert not coordination.shared


def _cut_at_commit(wire: TcpProxy, landed: Callable[[], bool] | None) -> list[bytes]:
    """The next COMMIT does not reach the server; or it does, has `landed`, and its answer does not come back.

    Returns what holds the COMMIT once it was cut.
    """
    cut: list[bytes] = []

    def lose_answer() -> None:
        wait_until(landed or (lambda: True), "it never landed")
        wire.drop()
        wire.mend()

    def on_request(data: bytes) -> None:
        if b"COMMIT" not in data or cut:
            return
        cut.append(data)
        if landed is None:
            wire.drop()
        else:
            wire.delay_s = 0.15  # the answer waits for as long, on its way back
            threading.Thread(target=lose_answer, daemon=True).start()

    wire.on_request = on_request
    return cut


def _tells_password(error: BaseException) -> bool:
    return PASSWORD in str(error) or PASSWORD.replace(" ", "%20") in str(error)


def _settled(remote: SqlCoordination, wire: TcpProxy) -> None:
    """Until what was held on the wire has landed or is gone."""
    with suppress(CoordinationError):
        remote.leases()
    wire.drop()
