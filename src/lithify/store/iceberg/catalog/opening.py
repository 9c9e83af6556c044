"""What opening a catalog takes, whichever it is: other processes may be creating it, and tables do not say how.

Which class opens a table's files is what the catalog's configuration says, never the table: PyIceberg lets a
table's properties name a Python class, which it imports and calls, and another server with other credentials. A
user who may set properties of a table must not thereby run code in the programs that read it.
"""

from __future__ import annotations

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.typedef import EMPTY_DICT, Properties
from tenacity import Retrying, retry_if_exception, stop_after_attempt

from lithify.store.iceberg.error_mapping import already_exists

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
