"""The databases that can hold leases, and connections to them with a timeout for every wait.

    wait                                   ends after
    for a connection of the pool           CONNECT_S
    for a server that does not answer      CONNECT_S while connecting, then ANSWER_S: the socket is closed
    for a server that restarts             10 s, at the first connection of a process only: later ones may hold leases
    for a lock, within PostgreSQL          STATEMENT_S
    for a process that has a lock          IDLE_S, if it is frozen or unreachable: PostgreSQL ends its transaction
    for the lock of an SQLite file         BUSY_S

An operation and its one retry end within some 20 s, which is less than a lease of 30 s.

Texts name a database without its password and without the query of its URL, where one may be too.
"""

from __future__ import annotations

from sqlalchemy import URL, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from lithify.errors import CoordinationError
from lithify.errors.extras import POSTGRES_URL
from lithify.model.settings.secrets import keep
from lithify.waits.postgres import with_driver
from lithify.waits.sql import bound_answers, connect_with_retries

CONNECT_S = 3
STATEMENT_S = 3
ANSWER_S = 5.0
"""For one operation; more than `STATEMENT_S`, so that a running server reports its own timeout first."""
IDLE_S = 5
"""Less than an operation and its retry wait for a lock: a frozen owner of leases keeps nobody from taking them."""
BUSY_S = 5
"""For the commits of other processes, also the catalog's where leases are in its SQLite file."""

FORMS = "postgresql://USER:PASSWORD@HOST/DATABASE or sqlite:////PATH/FILE.db, with %40 for @ and %2F for / in passwords"


def parsed(url: str) -> URL:
    """The URL of a database that can hold leases. Raises `CoordinationError`."""
    keep({"url": url})
    try:
        database = make_url(url)
    except (ArgumentError, ValueError):
        raise _unreadable() from None
    if "@" in (database.host or ""):
        raise CoordinationError("the URL of the lease database has two '@'", hint=f"write {FORMS}")
    return with_driver(database)


def shown(url: URL) -> str:
    """The URL for messages, without secrets."""
    return url.set(query={}, database=(url.database or "").removeprefix("file://")).render_as_string(hide_password=True)


def in_memory(url: URL) -> bool:
    """Whether it is a database in memory, which no other process can reach."""
    return url.get_backend_name() == "sqlite" and (
        url.database in (None, "", ":memory:") or url.query.get("mode") == "memory"
    )


def engine_at(url: str) -> Engine:
    """A new engine for a database that processes share. Raises `CoordinationError`."""
    database = parsed(url)
    if in_memory(database):
        raise CoordinationError("a database in memory cannot be shared", hint="use a file: sqlite:////PATH/FILE.db")
    return bounded_engine(database)


def url_beside(engine: Engine) -> URL | None:
    """The database of a catalog, for an engine of one's own; None if no other process can reach it."""
    if in_memory(engine.url):
        return None
    return engine.url.set(drivername=f"{engine.dialect.name}+{engine.driver}")


def bounded_engine(url: URL) -> Engine:
    """A new engine for a database, not connected yet. Raises `CoordinationError`."""
    try:
        match url.drivername:
            case "sqlite" | "sqlite+pysqlite":
                # A connection for each operation, so that none remains open or is shared by threads.
                return create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_S})
            case "postgresql+psycopg2" | "postgresql+psycopg":
                return _postgres(url)
    except (ArgumentError, ValueError):
        raise _unreadable() from None
    except ModuleNotFoundError as error:
        raise CoordinationError(
            f"leases in {shown(url)} need the package {error.name}",
            hint=POSTGRES_URL,
        ) from None
    raise CoordinationError(f"leases cannot be stored in a database of the kind {url.drivername}", hint=f"use {FORMS}")


def _unreadable() -> CoordinationError:
    # A malformed URL may have the password anywhere, so no part of it is shown.
    return CoordinationError("the URL of the lease database cannot be read", hint=f"write {FORMS}")


def _postgres(url: URL) -> Engine:
    bounds = f"-c statement_timeout={STATEMENT_S * 1000} -c idle_in_transaction_session_timeout={IDLE_S * 1000}"
    options = f"{url.query.get('options', '')} {bounds}".strip()
    # By default texts are sent in the encoding of the database, which may lack characters that errors have.
    given = {"connect_timeout": CONNECT_S, "client_encoding": "utf8", "options": options}
    engine = create_engine(url, pool_timeout=CONNECT_S, connect_args=given)
    connect_with_retries(engine, only_first=True)
    bound_answers(engine, ANSWER_S)
    return engine
