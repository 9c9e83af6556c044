"""The name of a warehouse in databases that several warehouses share, and the database that its catalog is (C73)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lithify.errors import RefusedError, WarehouseError
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.ports.store import Warehouse

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from sqlalchemy import Engine

    from lithify.store.iceberg import IcebergStore
    from lithify.store.iceberg.catalog.embedded import CatalogSource


def scope_of(warehouse: Warehouse, *, makes: bool = False) -> WarehouseScope:
    """The same for all programs that work on a warehouse, whatever they call it. Raises `WarehouseError`.

    Who is to store something under that name `makes` the identity; until then it is the place.
    """
    store = _store(warehouse)
    scope = _by_place(store)
    return WarehouseScope(store.identity(makes=makes) or scope.where, scope.where, scope.location)


def _by_place(store: IcebergStore) -> WarehouseScope:
    from lithify.columnar.files.access import local_path, normal_form

    where = store.source.root or store.source.where
    folder = None if store.source.root is None else local_path(where)
    location = normal_form(where) if folder is None else f"file://{os.path.realpath(folder)}"
    return WarehouseScope(where, where, location)


def scope_of_place(warehouse: Warehouse, *, makes: bool) -> WarehouseScope:
    """The same of a place where perhaps no warehouse is, or none that can be reached: then by the place."""
    try:
        return scope_of(warehouse, makes=makes)
    except WarehouseError:
        return _by_place(_store(warehouse))


def check_stored(warehouse: Warehouse) -> None:
    """Raises `RefusedError` for one in memory."""
    if warehouse.doubles is not None:
        raise RefusedError(
            f"{warehouse.store.where}: cleaners, replicas, ingests and repair need a warehouse on a disk or in a store",
            hint="open one in a directory, such as pytest's tmp_path",
        )


def source_of(warehouse: Warehouse) -> CatalogSource:
    return _store(warehouse).source


def existing_catalog(warehouse: Warehouse) -> Catalog:
    """The catalog of a warehouse. Raises `WarehouseError` if there is none."""
    catalog = source_of(warehouse).existing()
    if catalog is None:
        raise WarehouseError(
            f"{scope_of(warehouse).where}: there is no warehouse",
            hint="check that its disk is mounted, and that --warehouse or $LITHIFY_WAREHOUSE is its place",
        )
    return catalog


def database_of(catalog: Catalog | None) -> Engine | None:
    """The database of a catalog that is one."""
    from pyiceberg.catalog.sql import SqlCatalog

    return catalog.engine if isinstance(catalog, SqlCatalog) else None


def lacks(source: CatalogSource, table: str) -> bool:
    """Whether a table is certainly not in the catalog's database: told without SQLAlchemy, of a catalog that is a file.

    Raises `WarehouseError`.
    """
    from lithify.store.iceberg.reaching import reaching

    rows = source.rows()
    if rows is None:
        return False
    with reaching(source.where):
        return not rows.has(table)


def _store(warehouse: Warehouse) -> IcebergStore:
    from lithify.store.iceberg import IcebergStore

    check_stored(warehouse)
    assert isinstance(warehouse.store, IcebergStore)  # what `open_warehouse` makes
    return warehouse.store
