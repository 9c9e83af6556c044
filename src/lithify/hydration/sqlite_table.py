"""The table of a topic in a SQLite file, which other programs may read at any time.

In WAL mode readers do not block the writer, nor it them. A process that is killed loses nothing that was stored; a
power cut may lose the last changes, rows and position together.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from lithify.errors import RefusedError
from lithify.hydration.rows import ORDERS, POSITIONS, BusyError, Change, Row, TableName, unusable
from lithify.service.snapshot.changes import LogKey

BUSY_S = 2.0
"""The wait for another writer, before the next try."""
CACHE_KIB = 64 * 1024
"""Of pages of the file: keys arrive in any order, and each needs another page of their index."""
TEMPORARY = ""
"""The path of a database that SQLite deletes with its connection, even of a killed process."""


class SqliteTable:
    """See `rows.StoredTable`. The file is created if it is missing."""

    def __init__(self, where: TableName) -> None:
        self._where, self._path, self._name, self._table = where, where.path, where.name, where.quoted
        with self._explained():
            self._connection = sqlite3.connect(where.path, timeout=BUSY_S, isolation_level=None)
        try:
            with self._explained():
                self._check_may_have_tables()
                self._connection.execute("PRAGMA journal_mode=WAL")
                self._connection.execute("PRAGMA synchronous=NORMAL")
                self._connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
                self._file = where.file()
                self.position = self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def orders(self, keys: Collection[LogKey]) -> Mapping[LogKey, int]:
        orders: dict[LogKey, int] = {}
        sql = f'SELECT "order" FROM {ORDERS} WHERE name = ? AND partition = ? AND key = ?'
        with self._explained():
            for place in keys:
                if (row := self._connection.execute(sql, (self._name, *place)).fetchone()) is not None:
                    orders[place] = self._where.order(row[0])
        return orders

    def apply(self, change: Change) -> None:
        with self._transaction() as c:
            (position,) = c.execute(f"SELECT position FROM {POSITIONS} WHERE name = ?", (self._name,)).fetchone() or (
                "",
            )
            self._where.check_no_other_run(position, change)
            c.executemany(f"DELETE FROM {self._table} WHERE partition = ? AND key = ?", change.deleted)
            c.executemany(f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?, ?, ?, ?, ?)", change.rows)
            orders = ((self._name, *place, str(order)) for place, order in change.orders.items())
            c.executemany(f"INSERT OR REPLACE INTO {ORDERS} VALUES (?, ?, ?, ?)", orders)
            c.execute(f"UPDATE {POSITIONS} SET position = ? WHERE name = ?", (change.position, self._name))

    def rows(self) -> Iterator[Row]:
        """In the order of partitions and offsets."""
        with self._explained():
            yield from self._connection.execute(f'SELECT * FROM {self._table} ORDER BY partition, "offset"')

    def release(self) -> None: ...

    def close(self) -> None:
        with self._explained():
            self._connection.close()

    def _check_may_have_tables(self) -> None:
        """Raises `RefusedError` for the catalog of a warehouse, and for names that SQLite keeps for itself."""
        if self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'iceberg_tables'").fetchone():
            raise RefusedError(f"{self._path} is a catalog of Iceberg tables", hint="use another file")
        if self._name.lower().startswith("sqlite_"):
            raise RefusedError(
                f"{self._path}: SQLite reserves names that begin with sqlite_, such as {self._name}",
                hint="use a DuckDB file or a file of JSON lines",
            )

    def _prepare(self) -> str:
        """Creates what is missing; returns the stored position."""
        with self._transaction() as c:
            c.execute(f"CREATE TABLE IF NOT EXISTS {POSITIONS} (name TEXT PRIMARY KEY, position TEXT, strategy TEXT)")
            c.execute(
                f'CREATE TABLE IF NOT EXISTS {ORDERS} (name TEXT, partition INTEGER, key BLOB, "order" TEXT NOT NULL, '
                "PRIMARY KEY (name, partition, key)) WITHOUT ROWID"
            )
            there = c.execute("SELECT 1 FROM sqlite_master WHERE lower(name) = lower(?)", (self._name,)).fetchone()
            row = c.execute(f"SELECT position, strategy FROM {POSITIONS} WHERE name = ?", (self._name,)).fetchone()
            if (position := self._where.position(there=there is not None, row=row)) is not None:
                return position
            c.execute(f"DELETE FROM {ORDERS} WHERE name = ?", (self._name,))
            c.execute(f"INSERT OR REPLACE INTO {POSITIONS} VALUES (?, '', ?)", (self._name, self._where.strategy))
            c.execute(
                f"CREATE TABLE {self._table} (partition INTEGER NOT NULL, key BLOB NOT NULL, value BLOB, "
                '"offset" INTEGER NOT NULL, timestamp INTEGER NOT NULL, headers TEXT NOT NULL, '
                "PRIMARY KEY (partition, key))"
            )
        return ""

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._where.check_still(self._file)  # SQLite itself writes on into a file that is gone
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise BusyError(f"another program writes to {self._path}") from error
            if code == sqlite3.SQLITE_NOTADB:
                raise RefusedError(f"{self._path} is not a SQLite file", hint="use another file") from error
            raise unusable(self._path, error) from error
