"""The folders of topics: documents, which files are there, which are needed, which are deleted (C6, C45, C47).

A topic is deleted in this order:

    list the folder ─► remove the table from the catalog ─► write a note ─► delete the listed files ─► the note
         ▲                  │
         └── another commit ┘

The deleted files existed before the catalog removed the topic, and have names that Lithify gives, so they belong to
this topic. File names are never given twice, and a recreated topic has a folder of its own. An interrupted deletion
leaves the note, by which `lithify repair` recognizes the remaining files. Without it they are a topic that the
catalog has lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lithify.columnar.files.access import FileAccess
from lithify.errors import DamagedError, RefusedError
from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.model.stored_file import Closing, FileKind, NamedFiles, OtherCommit, StoredFile
from lithify.model.topic.state import TopicState
from lithify.ports.documents import DocumentKind
from lithify.store.errors import no_common_folder, no_warehouse
from lithify.store.iceberg import layout
from lithify.store.iceberg.catalog.embedded import CatalogSource
from lithify.store.iceberg.catalog.newest_state import topic_state
from lithify.store.iceberg.catalog.stated_format import CheckedSource, state_format, stated_format
from lithify.store.iceberg.catalog.tables import TopicTables
from lithify.store.iceberg.io.documents import read_document_if_there, write_document
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.store.iceberg.io.folders import delete_files, is_missing, remove_empty_folders, stored_files, within
from lithify.store.iceberg.reaching import reaching, writing
from lithify.store.iceberg.state import topic_codec
from lithify.store.iceberg.state.lineage import claimed_version

if TYPE_CHECKING:
    from pyiceberg.table import Table

_MASK = re.compile(r"(?:data/)?partition=\d+/\d{20}-[\w-]+\.deletes\.parquet")


class TopicFolders:
    """The part of the store that handles files of topics by their paths."""

    def __init__(self, source: CatalogSource) -> None:
        self._source = CheckedSource(source)
        self._tables = TopicTables(self._source)

    @property
    def _access(self) -> FileAccess:
        return FileAccess(self._source.io_properties)

    def drop_topic(self, name: TopicName) -> tuple[str, ...]:
        """Raises `UnknownTopicError`, `RefusedError`, `ConflictError` or `WarehouseError`."""
        table = self._tables.load(name)
        properties, io_properties = table.metadata.properties, self._source.io_properties
        topic_codec.check_format(name, properties)
        location = topic_codec.topic_location(name, properties, table.metadata.location)

        def files() -> tuple[StoredFile, ...]:
            with writing(location):
                listed = tuple(stored_files(location, io_properties))
            self._refuse_other_commits(name, location, listed)
            return listed

        listed = self._tables.drop(table, files)
        FILE_CACHE.clear()
        note = layout.deleted_file(location)
        with writing(location):
            write_document(self._access, note, {"topic": str(table.metadata.table_uuid)})
            delete_leftovers(location, listed, io_properties)
        return tuple(file.path for file in listed if file.kind is FileKind.FOREIGN)

    def _refuse_other_commits(self, name: TopicName, location: str, listed: Sequence[StoredFile]) -> None:
        from lithify.store.iceberg.commit.other_commits import other_commit_of

        table = self._tables.load(name)
        other = other_commit_of(table, location, [file.path for file in listed], self._access)
        if other is not None:
            raise RefusedError(
                f"{name}: {other.problem(claimed_version(table.metadata.properties))}; nothing was deleted",
                hint="delete it through the catalog that has these commits; if no catalog has them, take them over "
                f"with `lithify repair {name} --metadata {other.path} --yes`",
            )

    def stored_files(self, state: TopicState) -> Iterator[StoredFile]:
        """Raises `WarehouseError`."""
        with reaching(state.location):
            yield from stored_files(state.location, self._source.io_properties)

    def get_document(self, topic: TopicState | None, kind: DocumentKind, key: str = "") -> Mapping[str, Any] | None:
        """Raises `DamagedError` or `WarehouseError`."""
        if topic is None and kind is DocumentKind.FORMAT:
            return stated_format(self._source)
        path = self.document_path(topic, kind, key)
        with reaching(path):
            return read_document_if_there(self._access, path)

    def put_document(
        self, topic: TopicState | None, kind: DocumentKind, content: Mapping[str, Any], key: str = ""
    ) -> None:
        """Raises `WarehouseError`, also for a whole warehouse that is not there yet."""
        if topic is None and kind is DocumentKind.FORMAT:
            state_format(self._source, content)
            return
        if topic is None and (self._source.existing() is None or is_missing(self._source.root)):
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
        """Raises what `load` raises, and `DamagedError` if a manifest cannot be read."""
        table = self._tables.load(name)
        try:
            return self._named(name, table)
        except DamagedError:
            newest = self._tables.load(name)
            if newest.metadata_location == table.metadata_location:
                raise
            return self._named(name, newest)  # what was read may have been superseded and swept meanwhile

    def _named(self, name: TopicName, table: Table) -> NamedFiles:
        from lithify.store.iceberg.commit.referenced import named_files

        return named_files(table, topic_state(name, table.metadata, table.metadata_location).location)

    def other_commit(self, state: TopicState, stored: Sequence[StoredFile], named: NamedFiles) -> OtherCommit | None:
        """Raises `WarehouseError`."""
        from lithify.store.iceberg.commit.other_commits import other_commit

        return other_commit(state.location, state.identity, [file.path for file in stored], named.all, self._access)

    def note_named(self, state: TopicState, stored: Sequence[StoredFile], named: NamedFiles, now_ms: int) -> None:
        """Raises `DamagedError` or `WarehouseError`."""
        from lithify.store.iceberg.commit.referenced import looks_with

        looks = looks_with(state, stored, named, self._access, now_ms)
        if looks is not None:
            path = layout.superseded_file(state.location)
            with writing(path):
                write_document(self._access, path, looks.to_json())

    def closings(self, state: TopicState, stored: Sequence[StoredFile], now_ms: int) -> Mapping[str, Closing]:
        """Raises `DamagedError` or `WarehouseError`."""
        from lithify.store.iceberg.commit.referenced import all_closings

        return all_closings(state, stored, self._access, now_ms)

    def delete_files(self, state: TopicState, paths: Sequence[str]) -> None:
        """Raises `WarehouseError`, and `ValueError` for a file that is not one of the topic's."""
        for path in paths:
            relative = within(state.location, path)
            if relative is None or not layout.is_ours(relative):
                raise ValueError(f"{path} is not a file of {state.name}")
        with writing(str(state.name)):
            delete_files(paths, self._source.io_properties)


def delete_leftovers(location: str, listed: Sequence[StoredFile], io_properties: Mapping[str, str]) -> None:
    """Deletes the files of a topic that the catalog has removed, the note of that last. Raises `OSError`."""
    note = layout.deleted_file(location)
    ours = (file.path for file in listed if file.kind is not FileKind.FOREIGN)
    delete_files([path for path in ours if path != note], io_properties)
    delete_files([note], io_properties)
    remove_empty_folders(location)


def loose_masks(
    access: FileAccess, location: str, paths: Sequence[str], segments: Iterable[Segment]
) -> tuple[tuple[Segment, ...], tuple[str, ...]]:
    """Of the `paths` of a topic's folder the masks of these segments, which no metadata names, and damaged masks."""
    from lithify.columnar.segment.mask_file import masked_by

    by_path = {segment.path: segment for segment in segments}
    masked: list[Segment] = []
    damaged: list[str] = []
    for path in paths:
        if _MASK.fullmatch(path[len(location) + 1 :]):
            try:
                found = masked_by(access, path, by_path)
            except Exception:  # damaged bytes fail in any way
                damaged.append(path)
            else:
                masked += [] if found is None else [found]
    return tuple(masked), tuple(damaged)
