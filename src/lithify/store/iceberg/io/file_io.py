"""Which program opens a table's files: what the catalog's own configuration says, never the table.

PyIceberg lets a table's properties name a Python class, which it imports and calls, and another server with
other credentials. A user who may set properties of a table must not thereby run code in the programs that read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyiceberg.io import FileIO, load_file_io
from pyiceberg.typedef import EMPTY_DICT, Properties

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog


def by_configuration(catalog: Catalog) -> Catalog:
    """The catalog, changed to open files of all its tables by its own properties."""

    def load(properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return load_file_io(catalog.properties, location)

    catalog._load_file_io = load  # type: ignore[method-assign]
    return catalog
