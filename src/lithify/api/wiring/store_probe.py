"""Whether this machine can use the store of a warehouse's files: what `lithify doctor` tries there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.api.wiring.scopes import source_of
from lithify.model.names import TopicName
from lithify.ports.store import Warehouse

if TYPE_CHECKING:
    from lithify.store.iceberg.io.probe import Trial

_ENDPOINTS = ("s3.endpoint", "gcs.service.host", "adls.blob-storage-authority", "hdfs.host")


@dataclass(frozen=True, slots=True)
class Store:
    """Where a warehouse keeps files: a folder, a prefix for names in it, and the configured endpoint, if any."""

    folder: str
    prefix: str
    endpoint: str


def store_of(warehouse: Warehouse) -> Store | None:
    """Where all topics are; None if only the catalog knows where a topic is. Raises `WarehouseError`.

    Opens the catalog, and no file: what a store that does not answer is to blame for is seen by `try_store`.
    """
    root = source_of(warehouse).root
    return None if root is None else Store(root, ".", _endpoint(warehouse))  # no folder of a stream begins so


def store_of_topic(warehouse: Warehouse, topic: TopicName) -> Store:
    """Where the documents of a topic are: of the name there, a file that is left is deleted by a sweep."""
    return Store(f"{warehouse.store.load(topic).location}/lithify", "", _endpoint(warehouse))


def try_store(warehouse: Warehouse, store: Store) -> Trial:
    """Lists the folder, and writes, reads and deletes one small file in it, within a bounded time."""
    from lithify.store.iceberg.io.probe import probe  # takes half a second to import

    file = f"{store.prefix}lithify-doctor-{warehouse.clock.new_id()}.json"
    return probe(store.folder, file, source_of(warehouse).io_properties)


def _endpoint(warehouse: Warehouse) -> str:
    named = (str(source_of(warehouse).io_properties.get(name, "")) for name in _ENDPOINTS)
    return next(filter(None, named), "")
