"""The rows of an SQLite catalog, for verbs that only read: which topics there are, and where their metadata is.

PyIceberg's catalog and SQLAlchemy take half a second to import, and Python's own driver reads the same rows.
Who is to change the catalog, or finds it without its tables, opens it with PyIceberg.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any

_WHOLE = "SELECT count(*) FROM sqlite_master WHERE name IN ('iceberg_tables', 'iceberg_namespace_properties')"
_THERE = "SELECT count(*) FROM sqlite_master WHERE name = ?"
_TABLES = "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables WHERE catalog_name = ?"
_TABLE = f"{_TABLES} AND table_namespace = ? AND table_name = ?"
_PROPERTIES = (
    "SELECT namespace, property_key, property_value FROM iceberg_namespace_properties "
    "WHERE catalog_name = ? AND property_key LIKE ? || '%'"
)


@dataclass(frozen=True, slots=True)
class CatalogRows:
    """Each method opens the file, as a commit does, and raises `sqlite3.Error`."""

    uri: str
    catalog: str
    """Its name in the rows."""
    busy_timeout_s: int

    def is_whole(self) -> bool:
        """Whether it has the tables of a catalog: a creation may have been interrupted before them."""
        return self._rows(_WHOLE) == [(2,)]

    def has(self, table: str) -> bool:
        """Whether there is another table in the file."""
        return self._rows(_THERE, table) == [(1,)]

    def locations(self) -> list[tuple[tuple[str, ...], str | None]]:
        """Every table, and where its newest metadata is."""
        return [((stream, topic), location) for stream, topic, location in self._rows(_TABLES, self.catalog)]

    def location(self, stream: str, topic: str) -> str | None:
        """The same of one table; None without it."""
        return next((row[2] for row in self._rows(_TABLE, self.catalog, stream, topic)), None)

    def properties(self, prefix: str) -> list[tuple[str, str, str]]:
        """Namespaces and properties whose keys begin like that, perhaps in other letters."""
        return self._rows(_PROPERTIES, self.catalog, prefix)

    def _rows(self, query: str, *parameters: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.uri, uri=True, timeout=self.busy_timeout_s)) as connection:
            return connection.execute(query, parameters).fetchall()
