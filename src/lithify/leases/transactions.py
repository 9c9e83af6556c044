"""Short transactions in a database that processes share, each repeated once, on a new connection if need be.

So what a transaction does must have the same result when it is done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Table, inspect
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.schema import CreateTable

from lithify.errors import CoordinationError
from lithify.leases.database import engine_at, engine_beside, shown

T = TypeVar("T")

NAMES_AT_ONCE = 500
"""Names in one statement, below every database's limit of parameters."""


class Transactions:
    """Transactions of one database: PostgreSQL, or an SQLite file."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.many_rows = Lock()
        """Held for a transaction that locks several rows, as two of this process could deadlock."""

    def done(self, work: Callable[[Connection], T]) -> T:
        """Runs a transaction, a second time if it fails. Raises `CoordinationError`."""
        try:
            return self._once(work)
        except SQLAlchemyError:
            pass  # SQLAlchemy has also dropped the other old connections of the pool
        try:
            return self._once(work)
        except SQLAlchemyError as error:
            raise self._unusable(error) from error

    def _once(self, work: Callable[[Connection], T]) -> T:
        with self._engine.begin() as connection:
            return work(connection)

    def insert_into(self, table: Table) -> Any:
        """An INSERT that may say what to do about an existing row."""
        return (postgresql if self._engine.dialect.name == "postgresql" else sqlite).insert(table)

    def _unusable(self, error: SQLAlchemyError) -> CoordinationError:
        # Not SQLAlchemy's own text, which has the statement and its parameters.
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        text = " ".join(str(cause).split())[:300] or type(cause).__name__
        return CoordinationError(
            f"the database of leases cannot be used: {text}",
            hint=f"check {shown(self._engine.url)}, or name another with --coordination-url",
        )


def shared_database(url: str | None, catalogs: Engine | None) -> Transactions | None:
    """The database at a SQLAlchemy URL, else that of a catalog, on separate connections; opens none yet.

    None if no other process can reach it. Raises `CoordinationError`.
    """
    if url is not None:
        return Transactions(engine_at(url))
    beside = None if catalogs is None else engine_beside(catalogs)
    return None if beside is None else Transactions(beside)


def make_table(connection: Connection, table: Table) -> None:
    """Creates a table unless it is there."""
    # Checked first, as a user of an existing table may have no right to create tables.
    if not has_table(connection, table):
        # PostgreSQL may fail one of two concurrent CREATEs nevertheless; its retry then finds the table.
        connection.execute(CreateTable(table, if_not_exists=True))


def has_table(connection: Connection, table: Table) -> bool:
    return inspect(connection).has_table(table.name)


def in_parts(these: Sequence[T]) -> list[Sequence[T]]:
    """So many at once as one statement may name."""
    return [these[start : start + NAMES_AT_ONCE] for start in range(0, len(these), NAMES_AT_ONCE)]
