"""`LogStore` on Iceberg: topics as tables, versions as snapshots of main.

    load        one metadata read: the state is in the table's properties
    segments    the manifests of the version's snapshot
    commit      see `swap`

`segments` reads an older state even after other commits: the state has its own manifest lists. The next commit
removes snapshots without a branch or tag from the metadata, and a restored catalog gives numbers of versions
a second time.

PyIceberg takes a third of a second to import, so only what needs it does, when it is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lithify.columnar.files.access import local_path
from lithify.errors import DamagedError, LithifyError, UnknownTopicError
from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.model.topic.edit import KeptVersion, TopicEdit
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import CommitUnknownError, StaleVersionError
from lithify.rules.lifecycle.landing import Landing, landing
from lithify.store.errors import no_warehouse, unknown_version
from lithify.store.iceberg import layout
from lithify.store.iceberg.catalog.embedded import CatalogSource
from lithify.store.iceberg.catalog.identity import made_identity, stored_identity
from lithify.store.iceberg.catalog.lock import turn_lock
from lithify.store.iceberg.catalog.newest_state import Lists, named_lists, read_newest, topic_state
from lithify.store.iceberg.catalog.streams import CatalogStreams
from lithify.store.iceberg.commit.kept_versions import check_view, closed_state, tag, view_gone, view_tag
from lithify.store.iceberg.io.checksums import ManifestList
from lithify.store.iceberg.io.documents import read_document
from lithify.store.iceberg.io.file_cache import FILE_CACHE
from lithify.store.iceberg.io.folders import create_folder
from lithify.store.iceberg.reaching import reaching
from lithify.store.iceberg.state import topic_codec
from lithify.store.iceberg.state.replica_codec import created
from lithify.store.iceberg.topic_folders import TopicFolders

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

REQUESTS_AT_ONCE = 12
"""A few less than the connections that an SQL catalog opens at most (`configured`)."""


class IcebergStore(TopicFolders):
    """`LogStore` over a catalog. `new_id` makes the name of a new topic's folder unique."""

    def __init__(self, source: CatalogSource, new_id: Callable[[], str]) -> None:
        super().__init__(source)
        self._new_id = new_id
        self._streams = CatalogStreams(self._source)
        self._identity: str | None = None

    @property
    def source(self) -> CatalogSource:
        """Where its catalog comes from."""
        return self._source

    @property
    def where(self) -> str:
        return self._source.where

    @property
    def at_once(self) -> int:
        root = self._source.root
        # Threads on one local disk only slow each other down.
        return REQUESTS_AT_ONCE if root is None or local_path(root) is None else 1

    def identity(self, *, makes: bool) -> str | None:
        """The identity of the warehouse, made if there is none yet and it `makes` one; None if there is none.

        Raises `WarehouseError`.
        """
        if self._identity is None and (catalog := self._source.existing()) is not None:
            with reaching(self.where):
                self._identity = made_identity(catalog, self._new_id) if makes else stored_identity(catalog)
        return self._identity

    def check_is_there(self) -> None:
        """Raises `WarehouseError`."""
        if self._source.rows() is None and self._source.existing() is None:
            raise no_warehouse(self.where)

    def create_warehouse(self) -> None:
        """Raises `WarehouseError`."""
        self._source.created()
        create_folder(self._source.root)

    def create_topic(self, new: NewTopic) -> TopicState:
        """Raises `TopicExistsError` or `WarehouseError`."""
        self._tables.create(new.name, {**topic_codec.new_topic(new), **created(new.replica)}, self._new_id)
        return self.load(new.name)

    def create_stream(self, stream: str, attributes: Mapping[str, str]) -> None:
        """Raises `RefusedError` or `WarehouseError`."""
        self._streams.create(stream, attributes)

    def streams(self) -> tuple[str, ...]:
        return self._streams.names()

    def stream_attributes(self, streams: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Raises `WarehouseError`."""
        return self._streams.attributes(streams)

    def stream_topics(self, stream: str) -> tuple[TopicName, ...]:
        """Raises `UnknownStreamError` or `WarehouseError`."""
        return self._streams.topics(stream)

    def change_stream(self, stream: str, attributes: Mapping[str, str], remove: Collection[str]) -> None:
        """Raises `UnknownStreamError` or `WarehouseError`."""
        self._streams.change(stream, attributes, remove)

    def edit_lock(self, stream: str) -> AbstractContextManager[None]:
        return self.commit_lock(TopicName(stream, ""))  # no topic has this name

    def drop_stream(self, stream: str) -> None:
        """Raises `UnknownStreamError`, `RefusedError` while there are tables in it, or `WarehouseError`."""
        self._streams.drop(stream)

    def topics(self) -> tuple[TopicName, ...]:
        return self._tables.topics()

    def change_tokens(self) -> Iterator[tuple[TopicName, str | None]]:
        """A token is where the table's metadata is. Raises `WarehouseError`."""
        yield from self._tables.metadata_files()

    def load(self, name: TopicName) -> TopicState:
        """Raises `UnknownTopicError`, `UnsupportedFormatError`, `DamagedError` or `WarehouseError`."""
        return self._newest(name)[0]

    def load_at(self, name: TopicName, token: str | None) -> TopicState:
        """Raises what `load` raises."""
        return self._newest_at(name, token)[0]

    def load_version(self, name: TopicName, version: int) -> TopicState:
        """Raises what `load` raises, or `UnknownVersionError`."""
        table = self._tables.load(name)
        metadata, newest = table.metadata, self._state(name, table.metadata, table.metadata_location)
        if version == newest.version:
            return newest
        versions = topic_codec.closed_versions(metadata.properties)
        for closed in versions:
            if closed.version == version:
                path = layout.version_file(newest.location, closed.record)
                state = closed_state(newest, path, read_document(self._access, path))
                return replace(state, stored_as=_lists_in(metadata, table.metadata_location, version))
        raise unknown_version(name, version, [closed.kept() for closed in versions], newest.version)

    def segments(self, state: TopicState, partitions: Sequence[int] | None = None) -> tuple[Segment, ...]:
        """Raises `DamagedError`, or `UnknownVersionError` for an old state that was swept."""
        return self._read(state, self._lists_of(state).log, partitions)

    def view(self, state: TopicState, partitions: Sequence[int] | None = None) -> tuple[Segment, ...]:
        """Raises what `segments` does, and `DamagedError` if the branch of the views is missing or replaced (C8)."""
        wanted = state.partitions if partitions is None else partitions
        if all(state.log(partition).view is None for partition in wanted):
            return ()
        manifest_list = self._lists_of(state).view
        if manifest_list is None:
            raise view_gone(state)
        segments = self._read(state, manifest_list, partitions)
        check_view(state, wanted, segments)
        return segments

    def commit(self, state: TopicState, edit: TopicEdit) -> TopicState:
        """Raises `StaleVersionError`, `CommitUnknownError`, `WarehouseError` or `DamagedError`."""
        from lithify.store.iceberg.commit.swap import send, stage
        from lithify.store.iceberg.state.table_shape import check_writable

        try:
            table = self._tables.load(state.name)
        except UnknownTopicError as error:
            raise StaleVersionError(f"{state.name} was deleted") from error
        newest = self._state(state.name, table.metadata, table.metadata_location)
        if newest != state:  # also another version of the same number, of a catalog that was restored
            raise StaleVersionError(f"{state.name}: version {state.version} is not the newest")
        check_writable(state.name, table.metadata)
        swap = stage(table, state, edit, self._access)
        try:
            return self._state(state.name, send(self._source.created(), table, swap), "the version just committed")
        except StaleVersionError:
            landed = self._newest_with(state, edit)
            if landed is None:
                raise
            return landed

    def commit_lock(self, name: TopicName) -> AbstractContextManager[None]:
        if self._source.existing() is None:
            return nullcontext()  # nothing to take turns on, and a folder for locks would be in the way
        return turn_lock(self._source, name)

    def versions(self, name: TopicName) -> tuple[KeptVersion, ...]:
        """Newest first. Raises what `load` raises."""
        return topic_codec.kept_versions(self._newest(name)[1])

    def report_ids(self, name: TopicName) -> tuple[str, ...]:
        """Newest first. Raises what `load` raises."""
        return topic_codec.report_ids(self._newest(name)[1])

    def clear_file_cache(self) -> None:
        FILE_CACHE.clear()

    def _newest_with(self, state: TopicState, edit: TopicEdit) -> TopicState | None:
        """The newest version, if it has `edit`. Raises `CommitUnknownError` if that is unknown.

        A transport that repeats a request by itself gets a conflict with its own first sending.
        """
        try:
            newest = self.load(state.name)
            outcome = landing(edit, state, newest, partial(self.segments, newest))
        except UnknownTopicError:
            return None
        except LithifyError as error:
            raise CommitUnknownError(
                f"{state.name}: the commit is in conflict, perhaps with itself: {error}"
            ) from error
        if outcome is Landing.UNKNOWN and newest.identity == state.identity:
            raise CommitUnknownError(f"{state.name}: the commit is in conflict, perhaps with itself")
        return newest if outcome is Landing.LANDED else None

    def _newest(self, name: TopicName) -> tuple[TopicState, Mapping[str, str]]:
        """The newest state of a topic, and the properties of its table."""
        return self._newest_at(name, self._tables.metadata_file(name))

    def _newest_at(self, name: TopicName, file: str | None) -> tuple[TopicState, Mapping[str, str]]:
        """The same, from a metadata file if one is given and can be read without PyIceberg."""
        newest = None if file is None else read_newest(self._access, name, file)
        if newest is None:
            table = self._tables.load(name)
            return self._state(name, table.metadata, table.metadata_location), table.metadata.properties
        self._tables.check_is_here(name, newest.state.location)
        return newest.state, newest.properties

    def _state(self, name: TopicName, metadata: TableMetadata, file: str) -> TopicState:
        state = topic_state(name, metadata, file)
        return replace(state, stored_as=_lists_in(metadata, file, state.version))

    def _lists_of(self, state: TopicState) -> Lists:
        return state.stored_as if isinstance(state.stored_as, Lists) else self._lists_now(state)

    def _lists_now(self, state: TopicState) -> Lists:
        """As the table names them. Raises `UnknownVersionError` if it names none: the version may have been swept."""
        table = self._tables.load(state.name)
        newest = self._state(state.name, table.metadata, table.metadata_location)
        is_other = newest.identity != state.identity or (newest.version == state.version and newest != state)
        lists = None if is_other else _lists_in(table.metadata, table.metadata_location, state.version)
        if isinstance(known := state.stored_as, Lists) and lists is not None and lists.log != known.log:
            lists = None  # of a kept version of the same number, of a catalog that was restored
        if lists is None:
            versions = topic_codec.closed_versions(table.metadata.properties)
            raise unknown_version(state.name, state.version, [closed.kept() for closed in versions], newest.version)
        return lists

    def _read(self, state: TopicState, listed: ManifestList, partitions: Sequence[int] | None) -> tuple[Segment, ...]:
        from lithify.store.iceberg.manifests.reading import read_segments

        try:
            return read_segments(self._access, listed, partitions)
        except DamagedError:
            self._lists_now(state)  # only a version that is kept has a right to its files (C7)
            raise


def _lists_in(metadata: TableMetadata, file: str, version: int) -> Lists | None:
    """The manifest lists of the newest version, or of a kept one; None if it is neither."""
    newest = metadata.current_snapshot()
    if newest is not None and newest.sequence_number == version:
        return named_lists(metadata, file, layout.MAIN_BRANCH, layout.VIEW_BRANCH)
    return named_lists(metadata, file, tag(version), view_tag(version))
