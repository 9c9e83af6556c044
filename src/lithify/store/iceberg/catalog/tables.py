"""The tables of topics in a catalog: finding, listing and dropping them; `table_creation` creates them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)

from lithify.errors import ConflictError, DamagedError, LithifyError, UnknownTopicError, WarehouseError
from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.model.topic.state import TopicState
from lithify.store.errors import outside, topic_exists, unknown_topic
from lithify.store.iceberg import layout
from lithify.store.iceberg.catalog.embedded import CatalogSource
from lithify.store.iceberg.catalog.listing import table_locations, tables_of
from lithify.store.iceberg.io.folders import is_below
from lithify.store.iceberg.reaching import reaching
from lithify.store.iceberg.state import topic_codec

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

T = TypeVar("T")

DROPS = 25
"""Attempts to remove a table from the catalog while other programs commit to it."""
LOOKS = 5
"""Times that its files are listed again for that: listing many takes long, and commits continue meanwhile."""

_NO_METADATA = (
    *(ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError, RecursionError),
    *(TypeError, ValueError, ValidationError, zlib.error),
)
"""PyIceberg's exceptions for bytes that are not metadata; an unreachable catalog raises others."""

READINGS = 5
"""Attempts to read the metadata: a commit may delete the file after the catalog has named it."""


class TopicTables:
    """The tables of a catalog that are topics."""

    def __init__(self, source: CatalogSource) -> None:
        self._source = source

    def create(self, name: TopicName, properties: Mapping[str, str], new_id: Callable[[], str]) -> None:
        """Creates the table of a topic, in a new folder. Raises `TopicExistsError`."""
        from lithify.store.iceberg.catalog.table_creation import create_table

        if self._is_there(name):  # a creation that the catalog refuses leaves a file in a folder of its own
            raise topic_exists(name)
        try:
            with reaching(self._source.where):
                create_table(self._source, name, properties, new_id)
        except WarehouseError as error:
            if isinstance(error.__cause__, TableAlreadyExistsError | CommitFailedException):
                raise topic_exists(name) from error
            raise

    def recreate(self, state: TopicState, segments: Sequence[Segment], replaces: Sequence[str]) -> None:
        """Recreates the table of a topic in the folder of `state`, with its logs and segments, in one commit."""
        from lithify.store.iceberg.catalog.table_creation import recreate_table

        with reaching(self._source.where):
            recreate_table(self._source, state, segments, replaces)

    def forget(self, name: TopicName, was: str) -> bool:
        """Whether the catalog has nothing under the name any more, where it had the metadata `was`; files remain.

        A catalog service deletes by name alone: there the entry is checked just before. Raises `WarehouseError`.
        """
        if not self._is_still(name, was):
            return False
        with reaching(self._source.where), suppress(NoSuchTableError, NoSuchNamespaceError):
            return _forgotten(self._source.created(), layout.identifier(name), was)
        return True

    def _is_there(self, name: TopicName) -> bool:
        """Works even if its metadata is damaged or lost."""
        try:
            self.load(name)
        except UnknownTopicError:
            return False
        except DamagedError:
            return True
        return True

    def _is_still(self, name: TopicName, was: str) -> bool:
        now = dict(self.metadata_files()).get(name, "")
        if now is not None:
            return now == was
        with suppress(LithifyError):
            return self.load(name).metadata_location == was
        return True  # an unreadable table has not been repaired

    def drop(self, table: Table, look: Callable[[], T]) -> T:
        """Removes a table from the catalog; returns the result of `look` right before.

        If others commit in between it looks again, a limited number of times. A recreated one of its name remains.
        A catalog service deletes by name alone: there the entry is checked just
        before. Raises `UnknownTopicError`, `ConflictError` or `WarehouseError`, and what `look` raises.
        """
        name, uuid = layout.topic_name(table.name()), table.metadata.table_uuid
        for attempt in range(DROPS):
            if attempt < LOOKS:
                seen = look()
            with reaching(self._source.where):
                if _dropped(table):
                    return seen
            table = self.load(name)
            if table.metadata.table_uuid != uuid:
                break
        raise ConflictError(
            f"{name}: it was changed, or deleted and recreated, while it was being deleted",
            hint="check the topic as it is now before you delete it; nothing was changed",
        )

    def topics(self, stream: str | None = None) -> tuple[TopicName, ...]:
        """All topics of the catalog, or of one stream, by name. Raises `WarehouseError`."""
        catalog = self._source.existing()
        if catalog is None:
            return ()
        with reaching(self._source.where):
            tables = tables_of(catalog, stream)
        return tuple(sorted(layout.topic_name(table) for table in tables if self._may_be_topic(table)))

    def metadata_files(self) -> tuple[tuple[TopicName, str | None], ...]:
        """Every table of the catalog, and where its metadata is if the catalog tells. Raises `WarehouseError`."""
        located: list[tuple[tuple[str, ...], str | None]] = []
        with reaching(self._source.where):
            if (rows := self._source.rows()) is not None:
                located = rows.locations()
            elif (catalog := self._source.existing()) is not None:
                located = table_locations(catalog)
            return tuple((layout.topic_name(table), location) for table, location in located)

    def metadata_file(self, name: TopicName) -> str | None:
        """Where the newest metadata is of a table, if that is told before the catalog is opened."""
        rows = self._source.rows()
        if rows is None:
            return None
        with reaching(self._source.where):
            return rows.location(name.stream, name.topic)

    def load(self, name: TopicName) -> Table:
        """The table as it is now.

        Raises `UnknownTopicError`, `DamagedError`, `LocationChangedError` or `WarehouseError`.
        """
        catalog = self._source.existing()
        if catalog is None:
            raise unknown_topic(name, self._source.where)
        for _ in range(READINGS):
            try:
                table = catalog.load_table(layout.identifier(name))
            except (NoSuchTableError, NoSuchNamespaceError) as error:
                raise unknown_topic(name, self._source.where) from error
            except FileNotFoundError as error:
                missing = error
            except _NO_METADATA as error:
                raise self._damaged(name, error) from error
            except Exception as error:
                with reaching(self._source.where):
                    raise error
            else:
                metadata = table.metadata
                self.check_is_here(name, topic_codec.pinned_location(metadata.properties) or metadata.location)
                return table
        raise DamagedError(f"{name}: the table's metadata is missing: {missing}", hint=_RESTORE) from missing

    def check_is_here(self, name: TopicName, path: str) -> None:
        """Raises `LocationChangedError` for files outside of a warehouse that is a folder: they are another one's.

        A copied folder has the paths of the original in its catalog. A sweep or a deletion there would delete the
        files that the original needs (C47).
        """
        root = self._source.root
        if root is not None and not is_below(root, path):
            raise outside(name, self._source.where, path)

    def _damaged(self, name: TopicName, error: Exception) -> DamagedError:
        """Names the file, where the catalog tells."""
        from lithify.store.iceberg.error_mapping import reason_of

        where = dict(self.metadata_files()).get(name)
        file = "" if where is None else f" in {where}"
        return DamagedError(f"{name}: the table's metadata cannot be read: {reason_of(error)}{file}", hint=_RESTORE)

    def _may_be_topic(self, table: tuple[str, ...]) -> bool:
        """Whether a table of the catalog is a topic; one that cannot be read is listed."""
        try:
            return topic_codec.is_topic(self.load(layout.topic_name(table)).metadata.properties)
        except UnknownTopicError:
            return False
        except LithifyError:
            return True


_RESTORE = (
    "restore it, or see what `lithify repair` can restore; if the warehouse was moved, move it back: tables hold "
    "the paths of their files"
)


def _dropped(table: Table) -> bool:
    """Whether the table was removed from its catalog as it was loaded; not if it has changed since."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = table.catalog
    if not isinstance(catalog, SqlCatalog):
        there = catalog.load_table(table.name())
        if there.metadata.table_uuid == table.metadata.table_uuid:
            catalog.drop_table(table.name())
            return True
        return False
    return _forgotten(catalog, table.name(), table.metadata_location)


def _forgotten(catalog: Catalog, table: tuple[str, ...], was: str) -> bool:
    """Whether the catalog no longer names this metadata; true for a table without any."""
    from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
    from sqlalchemy import delete

    if not isinstance(catalog, SqlCatalog):
        catalog.drop_table(table)
        return True
    if not was:
        return True
    *stream, topic = table  # PyIceberg takes the dots of a stream's name for levels
    row = delete(IcebergTables).where(
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == ".".join(stream),
        IcebergTables.table_name == topic,
        IcebergTables.metadata_location == was,
    )
    with catalog.engine.begin() as connection:
        return connection.execute(row).rowcount == 1
