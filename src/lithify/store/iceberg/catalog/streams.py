"""Streams as namespaces of a catalog, their attributes as properties of these.

    lithify.stream           true: the stream was created or changed
    lithify.stream.<name>    an attribute that was set, as text

Catalogs that cannot store properties of namespaces have streams without attributes. PyIceberg takes the dots of a
stream for levels when it lists namespaces, and a namespace as existing when one below it does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError

from lithify.errors import WarehouseError
from lithify.model.names import TopicName
from lithify.store.errors import stream_exists, stream_not_empty, unknown_stream
from lithify.store.iceberg.catalog.embedded import CatalogSource
from lithify.store.iceberg.catalog.identity import has_identity
from lithify.store.iceberg.catalog.listing import all_namespaces
from lithify.store.iceberg.catalog.stated_format import says_format
from lithify.store.iceberg.catalog.tables import TopicTables
from lithify.store.iceberg.reaching import reaching

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

_KNOWN = "lithify.stream"
_PREFIX = "lithify.stream."

Properties = Mapping[str, str]


class CatalogStreams:
    """`Streams` of one catalog."""

    def __init__(self, source: CatalogSource) -> None:
        self._source = source
        self._tables = TopicTables(source)

    def create(self, stream: str, attributes: Properties) -> None:
        """Raises `RefusedError` or `WarehouseError`."""
        if self._exists(stream):
            raise stream_exists(stream)
        properties = _stored(attributes)
        with self._storing():
            catalog = self._source.created()
            try:
                catalog.create_namespace((stream,), properties)
                return
            except NamespaceAlreadyExistsError:
                pass  # topics were in it, or it is another program's, or only one below it exists
            except Exception as error:
                if self._properties(catalog, [stream]):
                    raise stream_exists(stream) from error  # another process created it at the same time
                raise
            if self._properties(catalog, [stream]):
                raise stream_exists(stream)
            catalog.update_namespace_properties((stream,), updates=dict(properties))

    def names(self) -> tuple[str, ...]:
        """Raises `WarehouseError`."""
        with_topics = {name.stream for name in self._tables.topics()}
        catalog = self._source.existing()
        if catalog is None:
            return ()
        with reaching(self._source.where):
            return tuple(sorted({*with_topics, *self._properties(catalog, None)}))

    def attributes(self, streams: Collection[str]) -> dict[str, dict[str, str]]:
        """Raises `WarehouseError`."""
        by_stream: dict[str, dict[str, str]] = {}
        with reaching(self._source.where):
            if not streams:
                pass
            elif (rows := self._source.rows()) is not None:
                by_stream = _by_stream(rows.properties(_KNOWN), streams)
            elif (catalog := self._source.existing()) is not None:
                by_stream = self._properties(catalog, streams)
        return {stream: _attributes(properties) for stream, properties in by_stream.items()}

    def topics(self, stream: str) -> tuple[TopicName, ...]:
        """Raises `UnknownStreamError` or `WarehouseError`."""
        topics = self._tables.topics(stream)
        if not topics:
            self._check_exists(stream)
        return topics

    def change(self, stream: str, attributes: Properties, remove: Collection[str]) -> None:
        """Raises `UnknownStreamError` or `WarehouseError`."""
        self._check_exists(stream)
        removals = {f"{_PREFIX}{name}" for name in remove}
        with self._storing():
            try:
                self._source.created().update_namespace_properties((stream,), removals, dict(_stored(attributes)))
            except NoSuchNamespaceError as error:
                raise unknown_stream(stream, ()) from error

    def drop(self, stream: str) -> None:
        """Raises `UnknownStreamError`, `RefusedError` while there are tables in it, or `WarehouseError`."""
        self._check_exists(stream)
        with reaching(self._source.where):
            catalog = self._source.created()
            try:
                if catalog.list_tables((stream,)):
                    raise stream_not_empty(stream)
                # C66, C73: the format of the warehouse, or its identity, would be removed with it.
                if says_format(catalog, (stream,)) or has_identity(catalog, (stream,)):
                    ours = self._properties(catalog, [stream]).get(stream, {})
                    catalog.update_namespace_properties((stream,), set(ours))
                    return
                catalog.drop_namespace((stream,))
            except NamespaceNotEmptyError as error:
                raise stream_not_empty(stream) from error
            except NoSuchNamespaceError as error:
                raise unknown_stream(stream, ()) from error

    def _exists(self, stream: str) -> bool:
        return stream in self.attributes([stream]) or bool(self._tables.topics(stream))

    def _check_exists(self, stream: str) -> None:
        if not self._exists(stream):
            raise unknown_stream(stream, self.names())

    @contextmanager
    def _storing(self) -> Iterator[None]:
        with reaching(self._source.where):
            try:
                yield
            except NotImplementedError as error:
                raise WarehouseError(
                    f"{self._source.where}: the catalog does not store properties of namespaces, which hold the "
                    "attributes of streams",
                    hint="set the settings of each topic with `lithify topic alter`; nothing was changed",
                ) from error

    def _properties(self, catalog: Catalog, streams: Collection[str] | None) -> dict[str, dict[str, str]]:
        """Our properties of the streams that have any, among these; None means all of the catalog."""
        from pyiceberg.catalog.sql import SqlCatalog

        if isinstance(catalog, SqlCatalog):
            return _in_database(catalog, streams)
        if streams is None:
            spaces = {".".join(space): space for space in all_namespaces(catalog)}
        else:
            spaces = {stream: (stream,) for stream in streams}
        loaded = {stream: _loaded(catalog, space) for stream, space in spaces.items()}
        return {stream: properties for stream, properties in loaded.items() if _KNOWN in properties}


def _in_database(catalog: Catalog, streams: Collection[str] | None) -> dict[str, dict[str, str]]:
    """The same in one query."""
    from pyiceberg.catalog.sql import IcebergNamespaceProperties as Row
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy import select

    assert isinstance(catalog, SqlCatalog)
    query = select(Row.namespace, Row.property_key, Row.property_value).where(
        Row.catalog_name == catalog.name, Row.property_key.startswith(_KNOWN)
    )
    if streams is not None and len(streams) == 1:
        query = query.where(Row.namespace.in_(streams))
    with catalog.engine.connect() as connection:
        return _by_stream(connection.execute(query), streams)


def _by_stream(rows: Iterable[Sequence[str]], streams: Collection[str] | None) -> dict[str, dict[str, str]]:
    """The properties of the streams that were created or changed, among these; None means all."""
    by_stream: dict[str, dict[str, str]] = {}
    for stream, key, value in rows:
        by_stream.setdefault(stream, {})[key] = value
    return {
        s: properties
        for s, properties in by_stream.items()
        if _KNOWN in properties and (streams is None or s in streams)
    }


def _loaded(catalog: Catalog, space: tuple[str, ...]) -> dict[str, str]:
    try:
        properties = catalog.load_namespace_properties(space)
    except (NoSuchNamespaceError, NotImplementedError):
        return {}
    return {key: value for key, value in properties.items() if key.startswith(_KNOWN)}


def _stored(attributes: Properties) -> dict[str, str]:
    return {_KNOWN: "true", **{f"{_PREFIX}{name}": value for name, value in attributes.items()}}


def _attributes(properties: Properties) -> dict[str, str]:
    return {key.removeprefix(_PREFIX): value for key, value in properties.items() if key.startswith(_PREFIX)}
