"""What a warehouse can hold, as it says itself, and the check of it before anything else is read or written.

    <root>/.lithify/format.json                       in the folder of the warehouse
    property lithify.warehouse-format of a namespace  where the catalog gives every topic a folder of its own

A program that a warehouse is too new for neither reads nor writes it (C66).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pyiceberg.exceptions import NoSuchNamespaceError

from lithify.columnar.files.access import FileAccess
from lithify.columnar.files.sealed import parsed_object
from lithify.errors import DamagedError, WarehouseError
from lithify.errors.defects import readable
from lithify.model.formats.warehouse import WarehouseFormat, check_supported
from lithify.ports.documents import DocumentKind
from lithify.store.errors import no_warehouse
from lithify.store.iceberg.catalog.catalog_rows import CatalogRows
from lithify.store.iceberg.catalog.embedded import CatalogSource
from lithify.store.iceberg.io.documents import read_document_if_there, write_document
from lithify.store.iceberg.layout import catalog_document_file
from lithify.store.iceberg.reaching import reaching, writing

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from sqlalchemy import Engine

T = TypeVar("T")

NAMESPACE = ("lithify",)
PROPERTY = "lithify.warehouse-format"


def stated_format(source: CatalogSource) -> Mapping[str, Any] | None:
    """What the warehouse says, in its own words; None if nothing. Raises `DamagedError` or `WarehouseError`."""
    try:
        content = _stored(source)
        if content is not None:
            with readable(_place(source)):
                WarehouseFormat.from_json(content)
    except DamagedError as error:
        raise DamagedError(
            error.message,
            hint="restore it, or delete it: the warehouse then counts as one of an earlier Lithify until "
            "`lithify warehouse upgrade --yes`",
        ) from error
    return content


def _stored(source: CatalogSource) -> Mapping[str, Any] | None:
    if source.root is not None:
        path = catalog_document_file(source.root, DocumentKind.FORMAT)
        with reaching(path):
            return read_document_if_there(FileAccess(source.io_properties), path)
    catalog = source.existing()
    if catalog is None:
        return None
    with reaching(source.where):
        try:
            text = catalog.load_namespace_properties(NAMESPACE).get(PROPERTY)
        except (NoSuchNamespaceError, NotImplementedError):
            return None
    return None if text is None else parsed_object(_place(source), text.encode())


def says_format(catalog: Catalog, namespace: tuple[str, ...]) -> bool:
    """Whether the format of the warehouse is a property of that namespace, which may also be one of a stream."""
    return namespace == NAMESPACE and PROPERTY in catalog.load_namespace_properties(namespace)


def _place(source: CatalogSource) -> str:
    """Where it is stored, as messages name it."""
    if source.root is None:
        return f"{source.where}: the property {PROPERTY} of the namespace {NAMESPACE[0]}"
    return catalog_document_file(source.root, DocumentKind.FORMAT)


def state_format(source: CatalogSource, content: Mapping[str, Any]) -> None:
    """Stores what the warehouse is to say. Raises `WarehouseError`, also for one that is not there yet."""
    catalog = source.existing()
    if catalog is None:
        raise no_warehouse(source.where)
    if source.root is not None:
        path = catalog_document_file(source.root, DocumentKind.FORMAT)
        with writing(path):
            write_document(FileAccess(source.io_properties), path, content)
        return
    with reaching(source.where):
        try:
            catalog.create_namespace_if_not_exists(NAMESPACE)
            catalog.update_namespace_properties(NAMESPACE, updates={PROPERTY: json.dumps(content, sort_keys=True)})
        except NotImplementedError as error:
            raise WarehouseError(
                f"{source.where}: the catalog does not store properties of namespaces, which hold the format",
                hint="use a catalog whose warehouse is a folder or bucket, which holds the format; nothing was changed",
            ) from error


class CheckedSource:
    """A catalog whose warehouse is of a format that this version knows, or is never given to anyone."""

    def __init__(self, source: CatalogSource) -> None:
        self._source = source
        self._checked = False

    @property
    def where(self) -> str:
        return self._source.where

    @property
    def root(self) -> str | None:
        return self._source.root

    @property
    def io_properties(self) -> Mapping[str, str]:
        return self._source.io_properties

    @property
    def turns(self) -> Engine | None:
        return self._source.turns

    @property
    def lost(self) -> bool:
        return self._source.lost

    def rows(self) -> CatalogRows | None:
        rows = self._source.rows()
        return None if rows is None else self._supported(rows)

    def recovered(self) -> Catalog:
        return self._supported(self._source.recovered())

    def existing(self) -> Catalog | None:
        catalog = self._source.existing()
        return None if catalog is None else self._supported(catalog)

    def created(self) -> Catalog:
        return self._supported(self._source.created())

    def _supported(self, catalog: T) -> T:
        """Asks once: formats only go up, and a topic that needs a newer one says so itself."""
        if not self._checked:
            content = stated_format(self._source)
            if content is not None:
                check_supported(self._source.where, WarehouseFormat.from_json(content))
            self._checked = True
        return catalog
