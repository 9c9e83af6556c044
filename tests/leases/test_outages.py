"""Which errors of a real PostgreSQL say that it is away, in whatever language it says so (C50)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import DBAPIError

from lithify.coordination.leases.database import parsed
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.coordination.leases.sql_coordination import open_coordination
from lithify.errors import CoordinationError
from lithify.errors.extras import POSTGRES_DRIVERS
from lithify.store.iceberg.catalog import configured
from lithify.waits import sql
from lithify.waits.deadline import ENDING
from lithify.waits.sql import bound_answers, connect_with_retries, is_outage, while_restarting
from support.servers.postgres import PASSWORD, Postgres, a_postgres
from support.servers.tcp_proxy import free_port


@pytest.fixture(autouse=True)
def another_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """No text is one that is known."""
    monkeypatch.setattr(sql, "_AWAY", ())
    monkeypatch.setattr(sql, "_FOR_GOOD", ())
    monkeypatch.setattr(sql, "PATIENCE_S", 0.2)


@pytest.fixture(scope="module")
def starting() -> Iterator[Postgres]:
    """A server that starts for ever: a standby that waits for its primary, and takes no connections meanwhile."""
    with a_postgres(hot_standby="off") as server:
        server.stop_at_once()
        server.becomes_a_standby()
        yield server


def away(uri: str) -> bool:
    """Whether what a connection to it fails with is an outage, by each of the two ways to connect."""
    engine = create_engine(uri)
    connect_with_retries(engine)
    with pytest.raises(CoordinationError) as refused:
        Transactions(engine).done(lambda connection: connection.execute(text("SELECT 1")))
    with pytest.raises(DBAPIError) as failed:
        while_restarting(make_url(uri), create_engine(uri).connect)
    assert refused.value.is_outage is is_outage(failed.value)
    return refused.value.is_outage


def test_a_server_that_is_starting_is_away(starting: Postgres) -> None:
    assert away(starting.uri("postgres"))


def test_nobody_at_the_address_is_an_outage() -> None:
    assert away(f"postgresql+psycopg2://lithify:x@127.0.0.1:{free_port()}/lithify")
    assert away("postgresql+psycopg2://lithify:x@/lithify?host=/tmp/exists-not")


def test_a_silent_server_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lithify.waits.postgres.ASKED_S", 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
        assert away(f"postgresql+psycopg2://lithify:x@127.0.0.1:{port}/lithify?connect_timeout=2")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda server: server.uri("postgres", password=f"not {PASSWORD}"),
        lambda server: server.uri("nowhere"),
        lambda server: f"{server.uri('postgres')}?sslmode=require",
        lambda server: server.uri("postgres").replace("127.0.0.1", "no-such-host.invalid"),
    ],
    ids=["password", "database", "TLS", "host"],
)
def test_what_waiting_cannot_mend_is_none(server: Postgres, wrong: Callable[[Postgres], str]) -> None:
    assert not away(wrong(server))


def test_a_program_that_is_to_end_is_patient_with_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end took longer than it may, so that it was ended with 143 (C50)."""
    monkeypatch.setattr(sql, "PATIENCE_S", 600.0)
    ending = threading.Timer(0.2, ENDING.set)
    ending.start()
    try:
        assert away(f"postgresql+psycopg2://lithify:x@127.0.0.1:{free_port()}/lithify")
    finally:
        ending.join()
        ENDING.clear()


def lost_by(server: Postgres, statement: str) -> DBAPIError:
    """The error of a connection on which this is done to itself."""
    engine = create_engine(server.uri("postgres"))
    bound_answers(engine, 5.0)
    with pytest.raises(DBAPIError) as lost, engine.begin() as connection:
        connection.execute(text(statement))
    return lost.value


def test_a_connection_that_the_server_ends_is_an_outage(server: Postgres) -> None:
    assert is_outage(lost_by(server, "SELECT pg_terminate_backend(pg_backend_pid())"))


@pytest.mark.parametrize(
    ("code", "passes"),
    [("57P01", True), ("57P03", True), ("53300", True), ("08006", True), ("57014", False), ("42501", False)],
)
def test_a_statement_is_judged_by_its_sqlstate(server: Postgres, code: str, passes: bool) -> None:
    raised = f"DO $$ BEGIN RAISE EXCEPTION 'Die Datenbank …' USING ERRCODE = '{code}'; END $$"
    assert is_outage(lost_by(server, raised)) is passes


@pytest.mark.parametrize("installed", [POSTGRES_DRIVERS, POSTGRES_DRIVERS[:1], POSTGRES_DRIVERS[1:], ()], ids=str)
def test_a_url_without_a_driver_gets_one_that_is_installed(
    installed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lithify.errors.extras.find_spec", lambda name: name if name in installed else None)
    expected = "postgresql+" + (installed or POSTGRES_DRIVERS)[0]
    assert parsed("postgresql://u@h/d").drivername == expected
    assert configured._bounded("postgresql://u:p%40@h/d").startswith(f"{expected}://u:p%40@h/d?")
    assert parsed("postgresql+psycopg://u@h/d").drivername == "postgresql+psycopg"
    assert configured._bounded("sqlite:///catalog.db") == "sqlite:///catalog.db"


def test_a_catalog_and_leases_by_a_url_without_a_driver(
    server: Postgres, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = server.uri(database).replace("+psycopg2", "")
    monkeypatch.setenv("PYICEBERG_CATALOG__PLAIN__URI", uri)
    monkeypatch.setenv("PYICEBERG_CATALOG__PLAIN__WAREHOUSE", f"file://{tmp_path}")
    assert configured.NamedCatalog("plain").created().list_namespaces() == []
    assert open_coordination(uri).leases() == ()
