"""The table of a topic in a DuckDB file.

While one process has such a file open to write, no other one can even read it. So the file is closed whenever there is
nothing to store, and opened for the next change: `BusyError` says that another program has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from lithify.errors import RefusedError
from lithify.hydration.rows import ORDERS, POSITIONS, BusyError, Change, FileId, TableName, unusable
from lithify.service.snapshot.changes import LogKey

LOG_BYTES = 256 * 1024 * 1024
"""Of the log beside the file, before DuckDB brings it in: at its own 16 MiB it does so behind each change."""
_KEYS = (("partition", pa.int32()), ("key", pa.binary()))
_ROWS = pa.schema(
    [*_KEYS, ("value", pa.binary()), ("offset", pa.int64()), ("timestamp", pa.int64()), ("headers", pa.string())]
)
_ORDERS = pa.schema([*_KEYS, ("order", pa.string())])


class DuckDbTable:
    """See `rows.StoredTable`. The file is created if it is missing."""

    def __init__(self, where: TableName) -> None:
        self._where, self._path, self._name, self._table = where, where.path, where.name, where.quoted
        self._connection: Any = None
        self._file: FileId | None = None
        try:
            self.position = self._prepare()
        except BaseException:
            self.close()
            raise

    def orders(self, keys: Collection[LogKey]) -> Mapping[LogKey, int]:
        sql = f'SELECT partition, key, "order" FROM {ORDERS} SEMI JOIN given USING (partition, key) WHERE name = ?'
        with self._opened() as c, _given(c, pa.schema(_KEYS), keys):
            return {
                (p, bytes(key)): self._where.order(order) for p, key, order in c.execute(sql, [self._name]).fetchall()
            }

    def apply(self, change: Change) -> None:
        with self._transaction() as c:
            row = c.execute(f"SELECT position FROM {POSITIONS} WHERE name = ?", [self._name]).fetchone()
            self._where.check_no_other_run((row or ("",))[0], change)
            if change.deleted:
                with _given(c, pa.schema(_KEYS), change.deleted):
                    same = "t.partition = given.partition AND t.key = given.key"
                    c.execute(f"DELETE FROM {self._table} t USING given WHERE {same}")
            if change.rows:
                with _given(c, _ROWS, change.rows):
                    c.execute(f"INSERT OR REPLACE INTO {self._table} SELECT * FROM given")
            if change.orders:
                with _given(c, _ORDERS, [(*place, str(order)) for place, order in change.orders.items()]):
                    c.execute(f"INSERT OR REPLACE INTO {ORDERS} SELECT ?, given.* FROM given", [self._name])
            c.execute(f"UPDATE {POSITIONS} SET position = ? WHERE name = ?", [change.position, self._name])

    def release(self) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            with self._explained():
                self._connection.close()
            self._connection = None

    def _prepare(self) -> str:
        """Creates what is missing; returns the stored position."""
        with self._transaction() as c:
            c.execute(
                f"CREATE TABLE IF NOT EXISTS {POSITIONS} (name VARCHAR PRIMARY KEY, position VARCHAR, strategy VARCHAR)"
            )
            c.execute(
                f"CREATE TABLE IF NOT EXISTS {ORDERS} (name VARCHAR, partition INTEGER, key BLOB, "
                '"order" VARCHAR NOT NULL, PRIMARY KEY (name, partition, key))'
            )
            names = "SELECT 1 FROM information_schema.tables WHERE lower(table_name) = lower(?)"
            there = c.execute(names, [self._name]).fetchone()
            row = c.execute(f"SELECT position, strategy FROM {POSITIONS} WHERE name = ?", [self._name]).fetchone()
            if (position := self._where.position(there=there is not None, row=row)) is not None:
                return position
            c.execute(f"DELETE FROM {ORDERS} WHERE name = ?", [self._name])
            c.execute(f"INSERT OR REPLACE INTO {POSITIONS} VALUES (?, '', ?)", [self._name, self._where.strategy])
            c.execute(
                f"CREATE TABLE {self._table} (partition INTEGER NOT NULL, key BLOB NOT NULL, value BLOB, "
                '"offset" BIGINT NOT NULL, timestamp BIGINT NOT NULL, headers JSON NOT NULL, '
                "PRIMARY KEY (partition, key))"
            )
        return ""

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with self._explained():
            if self._connection is None:
                if self._file is not None and self._where.file() is None:  # it would make a new one
                    self._where.check_still(self._file)
                self._connection = duckdb.connect(self._path)
                self._file = self._where.file()
                self._connection.execute("SET enable_progress_bar = false")  # else on stdout in notebooks and `-c`
                self._connection.execute("SET threads = 1")  # more spin while one of them inserts
                self._connection.execute(f"SET checkpoint_threshold = '{LOG_BYTES}B'")
            yield self._connection

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with self._opened() as connection:
            connection.begin()
            try:
                yield connection
                self._where.check_still(self._file)
                connection.commit()
            except BaseException:
                self._abandon()
                raise

    def _abandon(self) -> None:
        """A connection that is closed rolls its transaction back, also one that DuckDB has ended by itself."""
        self._connection.close()
        self._connection = None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except duckdb.Error as error:
            text = str(error).partition("\n")[0]
            if "Could not set lock" in text:
                raise BusyError(f"another program has {self._path} open") from error
            if "not a valid DuckDB database file" in text:
                raise RefusedError(f"{self._path} is not a DuckDB file", hint="use another file") from error
            raise unusable(self._path, error) from error


@contextmanager
def _given(connection: Any, schema: pa.Schema, rows: Collection[Sequence[Any]]) -> Iterator[None]:
    """Rows as the view `given`."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
    connection.register("given", pa.Table.from_arrays(arrays, schema=schema))
    try:
        yield
    finally:
        connection.unregister("given")
