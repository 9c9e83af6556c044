"""Opening catalogs: the embedded one inside a local directory, or one that PyIceberg knows by name.

    --warehouse DIR   DIR/catalog.db, created with the first topic
    --catalog NAME    as PyIceberg's configuration files and environment describe it

Nothing is opened before it is needed, and reading an empty directory creates nothing in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from lithify.columnar.files.access import local_path
from lithify.errors import WarehouseError
from lithify.model.stored_file import local_folder
from lithify.store.iceberg.catalog.catalog_rows import CatalogRows
from lithify.store.iceberg.reaching import reaching

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from sqlalchemy import Engine

LOCAL_IO = {"py-io-impl": "lithify.store.iceberg.io.local_io.LocalFileIO"}
"""By names, since PyIceberg takes a third of a second to import."""

CATALOG_FILE = "catalog.db"
CATALOG_NAME = "lithify"
BUSY_TIMEOUT_S = 30
"""How long a commit waits for another one's few milliseconds in the SQLite file."""


class CatalogSource(Protocol):
    """Where a catalog comes from."""

    @property
    def where(self) -> str:
        """The warehouse, as messages name it."""
        ...

    @property
    def root(self) -> str | None:
        """The location below which topics get their folders; None if the catalog decides."""
        ...

    @property
    def io_properties(self) -> Mapping[str, str]:
        """What PyIceberg's FileIO needs to open files."""
        ...

    @property
    def turns(self) -> Engine | None:
        """Where committers of a remote warehouse take turns; None if there is no such place."""
        ...

    @property
    def lost(self) -> bool:
        """Whether there are files of topics, and no catalog any more."""
        ...

    def rows(self) -> CatalogRows | None:
        """What can be read of the catalog without opening it; None if it has to be. Raises `WarehouseError`."""
        ...

    def recovered(self) -> Catalog:
        """The catalog, recreated if it is lost. Raises `WarehouseError`."""
        ...

    def existing(self) -> Catalog | None:
        """The catalog; None if there is none yet, so that there are no topics. Raises `WarehouseError`."""
        ...

    def created(self) -> Catalog:
        """The catalog, created if there is none yet. Raises `WarehouseError`."""
        ...


class EmbeddedCatalog:
    """An SQLite catalog inside a local directory."""

    def __init__(self, directory: str) -> None:
        self._folder = local_folder(directory)
        self._catalog: Catalog | None = None
        self._rows: CatalogRows | None = None

    @property
    def where(self) -> str:
        return str(self._folder)

    @property
    def root(self) -> str:
        return f"file://{self._folder}"

    @property
    def io_properties(self) -> Mapping[str, str]:
        return LOCAL_IO

    @property
    def turns(self) -> None:
        return None  # its warehouse is local

    @property
    def lost(self) -> bool:
        return not self._has_bytes()

    def rows(self) -> CatalogRows | None:
        if self._rows is None and self._is_warehouse():
            rows = CatalogRows(f"file://{self._folder}/{CATALOG_FILE}?mode=rw", CATALOG_NAME, BUSY_TIMEOUT_S)
            with reaching(self.where):
                self._rows = rows if rows.is_whole() else None
        return self._rows

    def recovered(self) -> Catalog:
        if self._catalog is None and self.lost and self._folder.is_dir():
            self._catalog = self._new()
        return self.created()

    def existing(self) -> Catalog | None:
        if self._catalog is None and self._is_warehouse():
            self._catalog = self._opened()
        return self._catalog

    def created(self) -> Catalog:
        catalog = self.existing()
        if catalog is None:
            with reaching(self.where):
                self._folder.mkdir(parents=True, exist_ok=True)
            catalog = self._catalog = self._new()
        return catalog

    def _is_warehouse(self) -> bool:
        """False for an empty or missing directory. Raises `WarehouseError` if it has other files."""
        self._check_path()
        with reaching(self.where):
            if self._has_bytes():
                return True
            if not self._folder.exists():
                if self._folder.is_symlink():
                    with suppress(FileNotFoundError):
                        self._folder.stat()  # raises, for links in a circle
                    raise WarehouseError(
                        f"{self.where} is a link to {self._folder.readlink()}, which does not exist",
                        hint="mount its disk, or create that directory",
                    )
                return False
            if not self._has_nothing():
                if self._has_bytes():  # another process has created it since
                    return True
                what = (
                    "its catalog.db is empty"
                    if (self._folder / CATALOG_FILE).is_file()
                    else f"there is no {CATALOG_FILE}"
                )
                raise WarehouseError(
                    f"{self.where} is not a warehouse: {what}, and it is not an empty directory",
                    hint="use a warehouse, or a directory that is empty or does not exist yet; find topics whose "
                    "catalog is lost with `lithify repair`",
                )
            return False

    def _check_path(self) -> None:
        """Raises `WarehouseError` for a path that URIs, or the metadata of tables, cannot hold."""
        if any(character in self.where for character in "?#%"):
            raise WarehouseError(
                f"{self.where}: the path of a warehouse cannot contain '?', '#' or '%'", hint="use another path"
            )
        try:
            self.where.encode()
        except UnicodeEncodeError:
            raise WarehouseError(
                f"{self.where}: the path of a warehouse must be UTF-8",
                hint="use another path; if the path is UTF-8 but the locale is not, set LC_ALL=C.UTF-8",
            ) from None

    def _has_bytes(self) -> bool:
        catalog = self._folder / CATALOG_FILE
        return catalog.is_file() and catalog.stat().st_size > 0

    def _has_nothing(self) -> bool:
        """Whether it is empty, except for a catalog whose creation was interrupted."""
        files = self._folder.iterdir() if self._folder.is_dir() else [self._folder]
        return all(file.name.startswith(CATALOG_FILE) and file.is_file() for file in files)

    def _new(self) -> Catalog:
        """Opened, and created if necessary: nothing else creates the file."""
        with reaching(self.where):
            (self._folder / CATALOG_FILE).touch()
        return self._opened()

    def _opened(self) -> Catalog:
        from pyiceberg.catalog.sql import SqlCatalog, SqlCatalogBaseTable
        from sqlalchemy import create_engine
        from sqlalchemy.pool import NullPool

        from lithify.store.iceberg.catalog.opening import by_configuration, committing_as_loaded, retrying

        # `rw` makes no file: an empty catalog would take its place where its disk is unmounted while it is used.
        uri = f"sqlite:///file://{self._folder}/{CATALOG_FILE}?timeout={BUSY_TIMEOUT_S}&mode=rw&uri=true"
        # A connection per statement: nothing remains open behind a program's back, nor crosses a fork.
        engine = create_engine(uri, poolclass=NullPool)
        with reaching(self.where):
            retrying()(SqlCatalogBaseTable.metadata.create_all, engine)
            catalog = SqlCatalog(CATALOG_NAME, uri=uri, warehouse=self.root, **self.io_properties)
            catalog.engine.dispose()
            catalog.engine = engine
        return by_configuration(committing_as_loaded(catalog))


def catalog_source(warehouse: str | None, catalog: str | None) -> CatalogSource:
    """The catalog of a local directory (a path or a `file://` URI), or the one of that name.

    Raises `WarehouseError` if it is not exactly one of the two, or not a local directory.
    """
    if (warehouse is None) == (catalog is None):
        raise WarehouseError(
            "no warehouse and no catalog is given, or both are", hint="give either --warehouse DIR or --catalog NAME"
        )
    if catalog is not None:
        from lithify.store.iceberg.catalog.configured import NamedCatalog  # imports what servers need

        return NamedCatalog(catalog)
    assert warehouse is not None
    if warehouse.lower().startswith("file:/"):  # case means nothing in the name of a scheme
        warehouse = f"file:{warehouse[5:]}"
    path = local_path(warehouse) if "://" in warehouse or warehouse.startswith("file:/") else warehouse
    if path is None:
        raise WarehouseError(
            f"{warehouse} is not a local directory, so it cannot contain a catalog",
            hint="describe a catalog in ~/.pyiceberg.yaml, such as `type: sql`, a `uri` of PostgreSQL and "
            f"`warehouse: {warehouse}`, and give it with --catalog NAME",
        )
    return EmbeddedCatalog(path)
