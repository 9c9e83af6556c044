"""What a catalog lists: namespaces of all levels, and tables with the places of their metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyiceberg.exceptions import NoSuchNamespaceError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


def table_locations(catalog: Catalog) -> list[tuple[tuple[str, ...], str | None]]:
    """Every table, and where its newest metadata is. Of a catalog in SQL it is one query, else there is only a list."""
    from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
    from sqlalchemy import select

    if not isinstance(catalog, SqlCatalog):
        return [(table, None) for table in tables_of(catalog)]
    columns = IcebergTables.table_namespace, IcebergTables.table_name, IcebergTables.metadata_location
    rows = select(*columns).where(IcebergTables.catalog_name == catalog.name)
    with catalog.engine.connect() as connection:
        # All at once: a slow consumer must not keep SQLite's committers waiting.
        return [((stream, topic), location) for stream, topic, location in connection.execute(rows)]


def tables_of(catalog: Catalog, stream: str | None = None) -> list[tuple[str, ...]]:
    """All tables, or the tables of one stream."""
    if stream is None:
        return [table for space in all_namespaces(catalog) for table in catalog.list_tables(space)]
    try:
        return catalog.list_tables((stream,))
    except NoSuchNamespaceError:
        return []


def all_namespaces(catalog: Catalog, parent: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Of all levels, below `parent`."""
    for namespace in catalog.list_namespaces(parent):
        yield namespace
        yield from all_namespaces(catalog, namespace)
