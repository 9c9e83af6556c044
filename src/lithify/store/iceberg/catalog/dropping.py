"""Deleting a topic: first its entry in the catalog, then its files.

    list the folder ─► remove the table from the catalog ─► write a note ─► delete the listed files ─► the note
         ▲                  │
         └── another commit ┘

The deleted files existed before the catalog removed the topic, and have names that Lithify gives, so
they belong to this topic: file names are never given twice, and a recreated topic has a folder
of its own. An interrupted deletion leaves the note, by which `lithify repair` recognizes the remaining
files; without it they are a topic that the catalog has lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyiceberg.table import Table

from lithify.columnar.files.access import FileAccess
from lithify.model.stored_file import FileKind, StoredFile
from lithify.store.iceberg import layout
from lithify.store.iceberg.catalog.tables import TopicTables
from lithify.store.iceberg.error_mapping import writing
from lithify.store.iceberg.io.documents import write_document
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.store.iceberg.io.folders import delete_files, remove_empty_folders, stored_files


def drop(tables: TopicTables, table: Table, location: str, io_properties: Mapping[str, str]) -> tuple[str, ...]:
    """Removes the topic and deletes its files in `location`; returns files of other programs, which stay.

    Raises `UnknownTopicError`, `ConflictError` or `WarehouseError`.
    """

    def files() -> tuple[StoredFile, ...]:
        with writing(location):
            return tuple(stored_files(location, io_properties))

    listed = tables.drop(table, files)
    FILE_CACHE.clear()
    note = layout.deleted_file(location)
    with writing(location):
        write_document(FileAccess(io_properties), note, {"topic": str(table.metadata.table_uuid)})
        delete_leftovers(location, listed, io_properties)
    return tuple(file.path for file in listed if file.kind is FileKind.FOREIGN)


def delete_leftovers(location: str, listed: Sequence[StoredFile], io_properties: Mapping[str, str]) -> None:
    """Deletes the files of a topic that the catalog has removed, the note of that last. Raises `OSError`."""
    note = layout.deleted_file(location)
    ours = (file.path for file in listed if file.kind is not FileKind.FOREIGN)
    delete_files([path for path in ours if path != note], io_properties)
    delete_files([note], io_properties)
    remove_empty_folders(location)
