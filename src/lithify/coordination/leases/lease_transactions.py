"""Short transactions in a database that processes share, each repeated once, on a new connection if necessary.

So what a transaction does must have the same result when it is done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from sqlite3 import SQLITE_READONLY
from threading import Lock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary, finalize

from sqlalchemy import URL, Connection, Engine, Table, false, inspect, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable

from lithify.coordination.leases.database import bounded_engine, engine_at, parsed, shown, url_beside
from lithify.errors import CoordinationError, RefusedError
from lithify.errors.redaction import one_line
from lithify.waits.postgres import sqlstate
from lithify.waits.sql import is_outage

T = TypeVar("T")

NAMES_AT_ONCE = 500
"""Names in one statement, below every database's limit of parameters."""


class Transactions:
    """Transactions of one database: PostgreSQL, or an SQLite file."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.many_rows = Lock()
        """Held for a transaction that locks several rows, as two of this process could deadlock."""
        self._first: dict[str, Callable[[Connection], None] | None] = {}
        self._used = False

    def begin_with(self, name: str, work: Callable[[Connection], None]) -> None:
        """Has a transaction done before all that come from now on, once, unless one of that name was done already."""
        self._first.setdefault(name, work)

    def done(self, work: Callable[[Connection], T]) -> T:
        """Runs a transaction, a second time if it fails. Raises `CoordinationError`."""
        for name, first in list(self._first.items()):
            if first is not None:
                self._tried(first)
                self._first[name] = None
        return self._tried(work)

    def _tried(self, work: Callable[[Connection], T]) -> T:
        try:
            return self._once(work)
        except SQLAlchemyError:
            pass  # SQLAlchemy has also dropped the other old connections of the pool
        try:
            return self._once(work)
        except SQLAlchemyError as error:
            raise self._unusable(error) from error

    def check_there(self) -> None:
        """Raises `CoordinationError` for an SQLite file that is not there: a connection would make an empty one."""
        url = self._engine.url
        is_file = url.get_backend_name() == "sqlite" and url.database and not url.database.startswith("file:")
        if is_file and not Path(str(url.database)).exists():
            raise CoordinationError(
                f"the lease database cannot be used: {shown(url)} does not exist",
                hint="check the path, or pass another with --coordination-url",
            )

    def _once(self, work: Callable[[Connection], T]) -> T:
        if self._used:  # a new file in the place of a lost one would be without leases, tokens and jobs
            self.check_there()
        with self._engine.begin() as connection:
            done = work(connection)
        self._used = True
        return done

    def insert_into(self, table: Table) -> Any:
        """An INSERT that may say what to do about an existing row."""
        return (postgresql if self._engine.dialect.name == "postgresql" else sqlite).insert(table)

    def upsert_into(self, table: Table) -> Any:
        """An INSERT of whole rows, which takes the place of the row of the same primary key."""
        insert, key = self.insert_into(table), tuple(table.primary_key.columns)
        new = {column.name: insert.excluded[column.name] for column in table.columns if column not in key}
        return insert.on_conflict_do_update(index_elements=key, set_=new)

    def _unusable(self, error: SQLAlchemyError) -> CoordinationError:
        # Not SQLAlchemy's own text, which has the statement and its parameters.
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        text = one_line(str(cause), 300) or type(cause).__name__
        unusable = CoordinationError(
            f"the lease database cannot be used: {text}",
            hint=f"check {shown(self._engine.url)}, or pass another with --coordination-url",
        )
        unusable.is_outage = is_outage(error)
        return unusable


def shared_database(url: str | None, catalogs: Engine | None) -> Transactions | None:
    """The database at a SQLAlchemy URL, else a catalog's, on separate connections; opens none yet.

    In one process all users of the same database share its connections, so that a hundred readers of groups need no
    more of them than one. None if no other process can reach it. Raises `CoordinationError`.
    """
    if url is not None:
        return _shared(parsed(url), partial(engine_at, url))
    beside = None if catalogs is None else url_beside(catalogs)
    if catalogs is None or beside is None:
        return None
    shared = _OF_CATALOGS[catalogs] = _shared(beside, partial(bounded_engine, beside))
    return shared


def required_database(url: str | None, catalogs: Engine | None, scope: str, need: str) -> Transactions:
    """The same. Raises `RefusedError` if there is none, with `need`: what of the warehouse `scope` needs one."""
    shared = shared_database(url, catalogs)
    if shared is None:
        raise RefusedError(
            f"{scope}: {need}, but its catalog is not one",
            hint="pass one with --coordination-url or $LITHIFY_COORDINATION_URL: postgresql://..., sqlite:////PATH",
        )
    return shared


_IN_USE: WeakValueDictionary[URL, Transactions] = WeakValueDictionary()
_OF_CATALOGS: WeakKeyDictionary[Engine, Transactions] = WeakKeyDictionary()
"""Kept for as long as the catalog is, so that one reader after the other finds connections that are open."""
_OPENING = Lock()


def _shared(url: URL, make: Callable[[], Engine]) -> Transactions:
    """The transactions of that database that this process has, or else new ones: an engine takes long to make.

    Connections are closed when the last user is gone, and not some time later by the garbage collector.
    """
    with _OPENING:
        transactions = _IN_USE.get(url)
        if transactions is None:
            engine = make()
            transactions = _IN_USE[url] = Transactions(engine)
            finalize(transactions, engine.dispose).atexit = False
        return transactions


def make_table(connection: Connection, table: Table) -> None:
    """Creates a table, with its indexes, unless it is there."""
    # Checked first, as a user of an existing table may have no right to create tables.
    if has_table(connection, table):
        return
    try:
        with connection.begin_nested():  # PostgreSQL fails all but one of concurrent CREATEs nevertheless
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in table.indexes:
                connection.execute(CreateIndex(index, if_not_exists=True))
    except DBAPIError:
        if connection.invalidated or not has_table(connection, table):  # on a lost one that would hide why
            raise


def has_table(connection: Connection, table: Table) -> bool:
    return inspect(connection).has_table(table.name)


def may_write(connection: Connection, table: Table) -> bool:
    """Whether the user has the right to; the transaction continues if not."""
    return is_granted(lambda: connection.execute(update(table).where(false()).values(scope=table.c.scope)), connection)


def is_granted(does: Callable[[], object], connection: Connection) -> bool:
    """Whether the user has the right to what it does; the transaction continues if not."""
    try:
        with connection.begin_nested():
            does()
    except DBAPIError as error:
        if not is_denied(error):
            raise
        return False
    return True


def is_denied(error: DBAPIError) -> bool:
    """Whether a user has no right to do it, or the database is one that is only read."""
    return (
        sqlstate(error.orig) in ("42501", "25006")
        or getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == SQLITE_READONLY
    )


def in_parts(these: Sequence[T]) -> list[Sequence[T]]:
    """So many at once as one statement may name."""
    return [these[start : start + NAMES_AT_ONCE] for start in range(0, len(these), NAMES_AT_ONCE)]
