"""Topics as Apache Iceberg tables, through PyIceberg.

layout     folders, names of files           catalog/    where tables are found
store      `LogStore`                        state/      the state in a table's properties
files      `SegmentFiles`                    manifests/  segments as manifest entries
salvage    what is left of a damaged topic   commit/     the commit of an edit, what it closes
                                             io/         files and documents
"""

from __future__ import annotations

from collections.abc import Callable

from lithify.store.configuration import WAREHOUSE, check_described
from lithify.store.iceberg.catalog.embedded import catalog_source
from lithify.store.iceberg.files import IcebergFiles
from lithify.store.iceberg.store import IcebergStore


def open_store(
    warehouse: str | None, catalog: str | None, new_id: Callable[[], str]
) -> tuple[IcebergStore, IcebergFiles]:
    """The store of a local directory (path or `file://` URI) or of a catalog, one of the two.

    `new_id` gives unique, unpredictable ids of letters and digits. Nothing is opened before
    it is needed. Raises `WarehouseError`.
    """
    check_described({WAREHOUSE: warehouse or ""})
    source = catalog_source(warehouse, catalog)
    return IcebergStore(source, new_id), IcebergFiles(source, new_id)


__all__ = ["IcebergFiles", "IcebergStore", "open_store"]
