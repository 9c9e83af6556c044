"""What opening a catalog takes, whichever it is: other processes may be creating it, and tables do not say how.

Which class opens a table's files is what the catalog's configuration says, never the table: PyIceberg lets a
table's properties name a Python class, which it imports and calls, and another server with other credentials. A
user who may set properties of a table must not thereby run code in the programs that read it.

A commit in an SQL catalog is on the metadata that it was decided on, which PyIceberg would load once more:

    load ─► stage ─► the row, where it still names the metadata that was loaded ──none──► a conflict
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import CommitTableResponse, StagedTable, Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.update import (
    TableRequirement,
    TableUpdate,
    _apply_table_update,
    _TableMetadataUpdateContext,
    _update_table_metadata_log,
)
from pyiceberg.typedef import EMPTY_DICT, Properties
from tenacity import Retrying, retry_if_exception, stop_after_attempt

from lithify.store.iceberg.error_mapping import already_exists

if TYPE_CHECKING:
    from pyiceberg.catalog.sql import SqlCatalog

OPENINGS = 10
"""Attempts to open a catalog that another process may be creating."""


def retrying() -> Retrying:
    """Calls again what failed because another process creates the tables of a catalog in SQL."""
    return Retrying(retry=retry_if_exception(already_exists), stop=stop_after_attempt(OPENINGS), reraise=True)


def by_configuration(catalog: Catalog) -> Catalog:
    """The catalog, changed to open files of all its tables by its own properties."""

    def load(properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return load_file_io(catalog.properties, location)

    catalog._load_file_io = load  # type: ignore[method-assign]
    return catalog


def committing_as_loaded(catalog: SqlCatalog) -> SqlCatalog:
    """The catalog, changed to commit a table on the metadata that it was loaded with, without loading it again."""
    commit = type(catalog).commit_table

    def commit_table(table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        as_loaded: Any = catalog if isinstance(table, StagedTable) else _AsLoaded(catalog, table)
        return commit(as_loaded, table, requirements, updates)

    catalog.commit_table = commit_table  # type: ignore[method-assign]
    return catalog


class _AsLoaded:
    """A catalog in which a table is as it was loaded."""

    def __init__(self, catalog: SqlCatalog, table: Table) -> None:
        self._catalog, self._table = catalog, table

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def load_table(self, _: object) -> Table:
        return self._table

    def _update_and_stage_table(
        self, current: Table, _: object, requirements: Sequence[TableRequirement], updates: Sequence[TableUpdate]
    ) -> StagedTable:
        """As PyIceberg's, which copies the new metadata once more, each field of each schema and snapshot."""
        base, context = current.metadata, _TableMetadataUpdateContext()
        for requirement in requirements:
            requirement.validate(base)
        after = base
        for update in updates:
            after = _apply_table_update(update, after, context)
        after = _update_table_metadata_log(after, current.metadata_location, base.last_updated_ms)
        number = self._catalog._parse_metadata_version(current.metadata_location) + 1
        file = load_location_provider(after.location, after.properties).new_table_metadata_file_location(number)
        io = self._catalog._load_file_io(after.properties, file)
        return StagedTable(current.name(), after, file, io, self._catalog)
