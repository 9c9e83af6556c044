"""A catalog that PyIceberg's own configuration describes, with what the configuration leaves open.

Waits that would not end are given an end. In a PostgreSQL catalog, where its configuration does not
say otherwise:

    connect_timeout, tcp_user_timeout    how long a host that does not answer is waited for
    keepalives_idle, _interval, _count   how soon a connection whose other end is gone is found dead
    pool_pre_ping                        a connection that broke since its last use is made anew
    statement_timeout                    how long a commit waits for another one's few milliseconds
    idle_in_transaction_session_timeout  how long a program that froze within its commit blocks others

An SQL catalog opens at most 15 connections for all threads of a process (SQLAlchemy's own bound),
and a thread waits at most 30 s for one. Files: see `remote_io`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyiceberg.io import PY_IO_IMPL
from tenacity import Retrying, retry_if_exception, stop_after_attempt

from lithify.store.iceberg.trouble import made_by_another, reaching

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from sqlalchemy import Connection, Engine

REMOTE_IO = "lithify.store.iceberg.remote_io.RemoteFileIO"  # by name: importing it takes half a second

OPENINGS = 10
"""First openings that may meet another one that is making the same catalog."""

LIBPQ_DRIVERS = ("postgresql", "postgresql+psycopg2", "postgresql+psycopg")
CONNECTING = {
    "connect_timeout": "10",
    "tcp_user_timeout": "30000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
}
"""Parameters of libpq: in s, but for `tcp_user_timeout`, which is in ms."""

STATEMENT_TIMEOUT_MS = 30_000
IDLE_TIMEOUT_MS = 20_000
"""Shorter, so that a commit outlasts one that froze before it and holds its row."""


class NamedCatalog:
    """A catalog by name; safe to use from several threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._opening = Lock()

    @property
    def where(self) -> str:
        return f"catalog {self._name}"

    @property
    def root(self) -> str | None:
        warehouse = self._catalog.properties.get("warehouse", "")
        # For a REST catalog it may be a mere name, and the catalog gives tables their places.
        return warehouse.rstrip("/") if "://" in warehouse or warehouse.startswith("/") else None

    @property
    def io_properties(self) -> Mapping[str, str]:
        """They travel to Spark tasks, which open files and no database."""
        properties = self._catalog.properties
        return {name: value for name, value in properties.items() if not (name == "uri" and _is_database(value))}

    def existing(self) -> Catalog | None:
        return self._catalog

    def created(self) -> Catalog:
        return self._catalog

    @property
    def _catalog(self) -> Catalog:
        with self._opening:
            return self._opened

    @cached_property
    def _opened(self) -> Catalog:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.utils.config import Config

        retrying = Retrying(retry=retry_if_exception(made_by_another), stop=stop_after_attempt(OPENINGS), reraise=True)
        with reaching(self.where):
            described = Config().get_catalog_config(self._name) or {}
            catalog = retrying(load_catalog, self._name, **_left_open(described))
        catalog.properties = {PY_IO_IMPL: REMOTE_IO, **catalog.properties}
        engine = getattr(catalog, "engine", None)
        if engine is not None and engine.dialect.name == "postgresql":
            _bound_transactions(engine)
        return catalog


def _left_open(described: Mapping[str, Any]) -> dict[str, str]:
    """What to say of a catalog beside its description; nothing, but for an SQL catalog."""
    uri = str(described.get("uri", ""))
    return (
        {"uri": _bounded(uri), "pool_pre_ping": str(described.get("pool_pre_ping", "true"))}
        if _is_database(uri)
        else {}
    )


def _is_database(uri: str) -> bool:
    """Whether it is an address of SQLAlchemy's, and not that of a catalog service."""
    return not uri.startswith(("http://", "https://", "thrift://"))


def _bounded(uri: str) -> str:
    from sqlalchemy import make_url

    url = make_url(uri)
    if url.drivername not in LIBPQ_DRIVERS:
        return uri
    open_ones = {name: value for name, value in CONNECTING.items() if name not in url.query}
    return url.update_query_dict(open_ones).render_as_string(hide_password=False)


def _bound_transactions(engine: Engine) -> None:
    """Per transaction and not per session, so that it works through a pooler such as PgBouncer as well."""
    from sqlalchemy import event

    bounds = {"statement_timeout": STATEMENT_TIMEOUT_MS, "idle_in_transaction_session_timeout": IDLE_TIMEOUT_MS}
    statement = "SELECT " + ", ".join(f"set_config('{name}', '{value_ms}', true)" for name, value_ms in bounds.items())

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(statement)

    event.listen(engine, "begin", begin)
