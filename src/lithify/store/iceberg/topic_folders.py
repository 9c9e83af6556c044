"""The folders of topics: documents, which files are there, which are needed, which are deleted (C6, C45, C47)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyiceberg.table import Table

from lithify.columnar.files.access import FileAccess
from lithify.errors import DamagedError
from lithify.model.log import TopicState
from lithify.model.names import TopicName
from lithify.model.stored_file import Closing, NamedFiles, StoredFile
from lithify.ports.documents import DocumentKind
from lithify.store.errors import no_common_folder, no_warehouse
from lithify.store.iceberg import layout
from lithify.store.iceberg.catalog.embedded import CatalogSource
from lithify.store.iceberg.catalog.newest import topic_state
from lithify.store.iceberg.catalog.tables import TopicTables
from lithify.store.iceberg.commit.referenced import all_closings, looks_with, named_files
from lithify.store.iceberg.error_mapping import reaching, writing
from lithify.store.iceberg.io.documents import read_document_if_there, write_document
from lithify.store.iceberg.io.folders import delete_files, stored_files, within


class TopicFolders:
    """The part of the store that handles files of topics by their paths."""

    def __init__(self, source: CatalogSource) -> None:
        self._source = source
        self._tables = TopicTables(source)

    @property
    def _access(self) -> FileAccess:
        return FileAccess(self._source.io_properties)

    def stored_files(self, state: TopicState) -> Iterator[StoredFile]:
        """Raises `WarehouseError`."""
        with reaching(state.location):
            yield from stored_files(state.location, self._source.io_properties)

    def get_document(self, topic: TopicState | None, kind: DocumentKind, key: str = "") -> Mapping[str, Any] | None:
        """Raises `DamagedError` or `WarehouseError`."""
        path = self.document_path(topic, kind, key)
        with reaching(path):
            return read_document_if_there(self._access, path)

    def put_document(
        self, topic: TopicState | None, kind: DocumentKind, content: Mapping[str, Any], key: str = ""
    ) -> None:
        """Raises `WarehouseError`, also for a whole warehouse that is not there yet."""
        if topic is None and self._source.existing() is None:
            raise no_warehouse(self._source.where)
        path = self.document_path(topic, kind, key)
        with writing(path):
            write_document(self._access, path, content)

    def document_path(self, topic: TopicState | None, kind: DocumentKind, key: str = "") -> str:
        """Raises `WarehouseError` for a whole warehouse that has no folder of its own."""
        if topic is not None:
            return layout.document_file(topic.location, kind, key)
        if self._source.root is None:
            raise no_common_folder(self._source.where)
        return layout.catalog_document_file(self._source.root, kind)

    def named_files(self, name: TopicName) -> NamedFiles:
        """Raises what `load` raises, and `DamagedError` where a manifest cannot be read."""
        table = self._tables.load(name)
        try:
            return self._named(name, table)
        except DamagedError:
            newest = self._tables.load(name)
            if newest.metadata_location == table.metadata_location:
                raise
            return self._named(name, newest)  # what was read may have been superseded and swept meanwhile

    def _named(self, name: TopicName, table: Table) -> NamedFiles:
        return named_files(table, topic_state(name, table.metadata, table.metadata_location).location)

    def note_named(self, state: TopicState, stored: Sequence[StoredFile], named: NamedFiles, now_ms: int) -> None:
        """Raises `DamagedError` or `WarehouseError`."""
        looks = looks_with(state, stored, named, self._access, now_ms)
        if looks is not None:
            path = layout.superseded_file(state.location)
            with writing(path):
                write_document(self._access, path, looks.to_json())

    def closings(self, state: TopicState, stored: Sequence[StoredFile], now_ms: int) -> Mapping[str, Closing]:
        """Raises `DamagedError` or `WarehouseError`."""
        return all_closings(state, stored, self._access, now_ms)

    def delete_files(self, state: TopicState, paths: Sequence[str]) -> None:
        """Raises `WarehouseError`, and `ValueError` for a file that is not one of the topic's."""
        for path in paths:
            relative = within(state.location, path)
            if relative is None or not layout.is_ours(relative):
                raise ValueError(f"{path} is no file of {state.name}")
        with writing(str(state.name)):
            delete_files(paths, self._source.io_properties)
