"""`LogStore` on Iceberg: topics as tables, versions as snapshots of main.

    load        one metadata read: the state is in the table's properties
    segments    the manifests of the version's snapshot
    commit      see `swap`

A state stays good for `segments` after others have committed: its manifest list is remembered,
since snapshots that nobody named are gone from the metadata as soon as the next commit lands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.io import load_file_io
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata

from lithify.columnar.access import FileAccess
from lithify.errors import DamagedError, LithifyError, UnknownTopicError, WarehouseError
from lithify.model.log import KeptVersion, TopicEdit, TopicState
from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.model.settings import TopicSettings
from lithify.ports import StaleVersionError
from lithify.store.errors import topic_exists, unknown_topic, unknown_version
from lithify.store.iceberg import codec, layout
from lithify.store.iceberg.catalog import CatalogSource
from lithify.store.iceberg.documents import read_document, write_document
from lithify.store.iceberg.folders import delete_folder
from lithify.store.iceberg.lock import turn_lock
from lithify.store.iceberg.manifests import read_segments
from lithify.store.iceberg.recent import Recent
from lithify.store.iceberg.swap import send, stage
from lithify.store.iceberg.trouble import reaching, writing
from lithify.store.iceberg.versions import closed_state

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

READINGS = 5
"""Times that the metadata is looked for: the file may go while its name is on its way."""


class IcebergStore:
    """`LogStore` over a catalog. `new_id` makes the folder of a new topic its own."""

    def __init__(self, source: CatalogSource, new_id: Callable[[], str]) -> None:
        self._source = source
        self._new_id = new_id
        self._manifest_lists: Recent[tuple[str, int], str] = Recent()

    @property
    def _access(self) -> FileAccess:
        return FileAccess(self._source.io_properties)

    def create_topic(
        self, name: TopicName, original_name: str, settings: TopicSettings, partitions: int, created_ms: int
    ) -> TopicState:
        """Raises `TopicExistsError` or `WarehouseError`."""
        catalog = self._source.created()
        root = self._source.root
        try:
            with reaching(self._source.where):
                _make_namespace(catalog, name.stream)
                creation = catalog.create_table_transaction(
                    layout.identifier(name),
                    layout.SCHEMA,
                    location=None if root is None else layout.new_location(root, name, self._new_id()),
                    partition_spec=layout.PARTITION_SPEC,
                    sort_order=layout.SORT_ORDER,
                    properties={
                        **layout.TABLE_PROPERTIES,
                        **codec.new_topic(original_name, settings, partitions, created_ms),
                    },
                )
                # Every version is a snapshot on main, the first one as well.
                creation.update_snapshot(snapshot_properties={codec.RUN: "create"}).fast_append().commit()
                creation.commit_transaction()
        except WarehouseError as error:
            if isinstance(error.__cause__, TableAlreadyExistsError | CommitFailedException):
                raise topic_exists(name) from error
            raise
        return self.load(name)

    def drop_topic(self, name: TopicName) -> None:
        """Forgets the topic, then deletes its folder. Raises `UnknownTopicError` or `WarehouseError`."""
        table = self._table(name)
        codec.check_format(name, table.metadata.properties)
        with reaching(self._source.where):
            try:
                table.catalog.drop_table(layout.identifier(name))
            except NoSuchTableError as error:  # someone else was faster, and deletes the folder
                raise unknown_topic(name) from error
        with writing(table.metadata.location):
            delete_folder(table.metadata.location, table.io)

    def topics(self) -> tuple[TopicName, ...]:
        catalog = self._source.existing()
        if catalog is None:
            return ()
        with reaching(self._source.where):
            tables = [table for space in _namespaces(catalog, ()) for table in catalog.list_tables(space)]
        return tuple(sorted(layout.topic_name(table) for table in tables if self._may_be_topic(table)))

    def load(self, name: TopicName) -> TopicState:
        """Raises `UnknownTopicError`, `UnsupportedFormatError`, `DamagedError` or `WarehouseError`."""
        return self._state(name, self._table(name).metadata)

    def load_version(self, name: TopicName, version: int) -> TopicState:
        """Raises what `load` raises, or `UnknownVersionError`."""
        metadata = self._table(name).metadata
        newest = self._state(name, metadata)
        if version == newest.version:
            return newest
        versions = codec.closed_versions(metadata.properties)
        for closed in versions:
            if closed.version == version:
                self._remember(metadata, version)
                path = layout.version_file(newest.location, closed.record)
                return closed_state(newest, path, read_document(self._access, path))
        raise unknown_version(name, version, [closed.kept for closed in versions])

    def segments(self, state: TopicState, partitions: Sequence[int] | None = None) -> tuple[Segment, ...]:
        """Raises `DamagedError`, or `UnknownVersionError` for an old state of another process."""
        manifest_list = self._manifest_lists.get((state.identity, state.version))
        if manifest_list is None:
            manifest_list = self._looked_up(state)
        return read_segments(load_file_io(dict(self._source.io_properties), manifest_list), manifest_list, partitions)

    def commit(self, state: TopicState, edit: TopicEdit) -> TopicState:
        """Raises `StaleVersionError`, `CommitUnknownError`, `WarehouseError` or `DamagedError`."""
        try:
            table = self._table(state.name)
        except UnknownTopicError as error:
            raise StaleVersionError(f"{state.name} was deleted") from error
        newest = self._state(state.name, table.metadata)
        if (newest.identity, newest.version) != (state.identity, state.version):
            raise StaleVersionError(f"{state.name}: version {state.version} is not the newest")
        _check_writable(state.name, table.metadata)
        swap = stage(table, state, edit, self._access)
        try:
            return self._state(state.name, send(self._source.created(), table, swap))
        except StaleVersionError:
            # A transport that sends again by itself is told of a conflict: with its own first sending.
            landed = self._newest_with(state, edit)
            if landed is None:
                raise
            return landed

    def commit_lock(self, name: TopicName) -> AbstractContextManager[None]:
        if self._source.existing() is None:
            return nullcontext()  # nothing to take turns on, and a folder for locks would be in the way
        return turn_lock(self._source.root, name)

    def versions(self, name: TopicName) -> tuple[KeptVersion, ...]:
        """Newest first. Raises what `load` raises."""
        metadata = self._table(name).metadata
        codec.check_format(name, metadata.properties)
        return tuple(closed.kept for closed in codec.closed_versions(metadata.properties))

    def put_report(self, state: TopicState, report_id: str, report: Mapping[str, Any]) -> None:
        """Raises `WarehouseError`."""
        with writing(str(state.name)):
            write_document(self._access, layout.report_file(state.location, report_id), report)

    def reports(self, state: TopicState) -> Iterator[Mapping[str, Any]]:
        """Newest first. Raises what `load` raises."""
        metadata = self._table(state.name).metadata
        for report_id in codec.report_ids(metadata.properties):
            yield read_document(self._access, layout.report_file(metadata.location, report_id))

    def _newest_with(self, state: TopicState, edit: TopicEdit) -> TopicState | None:
        """The newest version, if a log that `edit` changes remembers its run there and not in `state`."""
        try:
            newest = self.load(state.name)
        except UnknownTopicError:
            return None
        theirs = zip(state.logs, newest.logs, strict=False) if newest.identity == state.identity else ()
        ours = any(edit.run_id in now.run_ids and edit.run_id not in before.run_ids for before, now in theirs)
        return newest if ours else None

    def _state(self, name: TopicName, metadata: TableMetadata) -> TopicState:
        state = codec.topic_state(name, metadata)
        self._remember(metadata, state.version)
        return state

    def _remember(self, metadata: TableMetadata, version: int) -> str | None:
        for snapshot in metadata.snapshots:
            if snapshot.sequence_number == version:
                self._manifest_lists.put((str(metadata.table_uuid), version), snapshot.manifest_list)
                return snapshot.manifest_list
        return None

    def _looked_up(self, state: TopicState) -> str:
        metadata = self._table(state.name).metadata
        manifest_list = self._remember(metadata, state.version)
        if manifest_list is None or str(metadata.table_uuid) != state.identity:
            versions = codec.closed_versions(metadata.properties)
            raise unknown_version(state.name, state.version, [closed.kept for closed in versions])
        return manifest_list

    def _table(self, name: TopicName) -> Table:
        catalog = self._source.existing()
        if catalog is None:
            raise unknown_topic(name)
        for _ in range(READINGS):
            try:
                return catalog.load_table(layout.identifier(name))
            except (NoSuchTableError, NoSuchNamespaceError) as error:
                raise unknown_topic(name) from error
            except FileNotFoundError as error:
                missing = error
            except (ValueError, ValidationError) as error:
                raise DamagedError(f"{name}: the table's metadata cannot be read: {error}", hint=_RESTORE) from error
            except Exception as error:
                with reaching(self._source.where):
                    raise error
        raise DamagedError(f"{name}: the table's metadata is missing: {missing}", hint=_RESTORE) from missing

    def _may_be_topic(self, table: tuple[str, ...]) -> bool:
        """Whether a table of the catalog is a topic; one that cannot be read is listed."""
        try:
            return codec.is_topic(self._table(layout.topic_name(table)).metadata.properties)
        except UnknownTopicError:
            return False
        except LithifyError:
            return True


_RESTORE = "restore it; if the warehouse was moved, move it back: tables hold the paths of their files"


def _check_writable(name: TopicName, metadata: TableMetadata) -> None:
    setting, value = layout.NO_RETRIES
    if metadata.properties.get(setting) != value:
        raise WarehouseError(
            f"{name}: the table property {setting} is not {value} any more, and retries would lose data",
            hint=f"set {setting}={value} on the table; nothing was changed",
        )


def _make_namespace(catalog: Catalog, stream: str) -> None:
    try:
        catalog.create_namespace_if_not_exists((stream,))
    except Exception:
        if not catalog.namespace_exists((stream,)):  # else another process made it at the same time
            raise


def _namespaces(catalog: Catalog, parent: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for namespace in catalog.list_namespaces(parent):
        yield namespace
        yield from _namespaces(catalog, namespace)
