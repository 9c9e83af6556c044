"""A catalog that PyIceberg's own configuration describes, with defaults for what it leaves open.

Every wait gets a deadline. In a PostgreSQL catalog, where its configuration does not
say otherwise:

    connect_timeout, tcp_user_timeout    how long to wait for a host that does not answer
    keepalives_idle, _interval, _count   how soon a connection without a peer is found dead
    (no parameter)                       10 s in which connecting to a restarting server is retried, also at first
    statement_timeout                    how long a commit waits for another one's few milliseconds
    idle_in_transaction_session_timeout  how long a program that is paused within its commit blocks others

Statements on a connection are answered within `ANSWER_S`, or its socket is shut; a connection that broke
since its last use is replaced (`waits/sql.py`). Opening any catalog takes `OPENING_S` at most, and so
does each request to a REST catalog `REQUEST_S`: PyIceberg gives its client no timeouts at all (C50).

An SQL catalog opens at most 15 connections for all threads of a process (SQLAlchemy's own bound),
and a thread waits at most 30 s for one. A catalog in PostgreSQL opens at most 15 more for turns of
committers (`lock`). Files: see `remote_io`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyiceberg.io import PY_IO_IMPL
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from requests.exceptions import ReadTimeout

from lithify.errors import WarehouseError
from lithify.model.names import nearest
from lithify.store.configuration import WAREHOUSE, check_described
from lithify.store.iceberg.catalog.opening import by_configuration, committing_as_loaded, retrying
from lithify.store.iceberg.reaching import reaching
from lithify.waits.deadline import within
from lithify.waits.postgres import with_driver
from lithify.waits.sql import bound_answers, connect_with_retries, while_restarting

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.utils.config import Config
    from sqlalchemy import Connection, Engine

REMOTE_IO = "lithify.store.iceberg.io.remote_io.RemoteFileIO"  # by name: importing it takes half a second

SHOWN = 10
"""Names of catalogs that an error lists."""

LIBPQ_DRIVERS = ("postgresql", "postgresql+psycopg2", "postgresql+psycopg")
CONNECTING = {
    "connect_timeout": "10",
    "tcp_user_timeout": "30000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
}
"""Parameters of libpq: in s, except `tcp_user_timeout`, which is in ms."""

TURN_S = 15.0
"""For a turn of committers: a few seconds more than it is waited for within the server (`lock`)."""

OPENING_S = 60.0
ANSWER_S = 40.0
"""More than the server's own limit for a statement, so that a live server reports its own error."""

REQUEST_TIMEOUTS_S = (5.0, 30.0)
"""Seconds to connect to a REST catalog, and seconds without a single byte from it."""
REQUEST_S = 60.0
"""Seconds for a whole request with its answer."""

STATEMENT_TIMEOUT_MS = 30_000
IDLE_TIMEOUT_MS = 20_000
"""Shorter than that, so that a commit outlasts a frozen one that holds its row."""


_FORM = "write postgresql://USER:PASSWORD@HOST/DATABASE, with %40 for @ and %2F for / in passwords"


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
        warehouse = self._catalog.properties.get(WAREHOUSE, "")
        # For a REST catalog it may be only a name, and the catalog gives tables their locations.
        return warehouse.rstrip("/") if "://" in warehouse or warehouse.startswith("/") else None

    @property
    def io_properties(self) -> Mapping[str, str]:
        """They travel to Spark tasks, which open files and no database."""
        properties = self._catalog.properties
        return {name: value for name, value in properties.items() if not (name == "uri" and _is_database(value))}

    @cached_property
    def turns(self) -> Engine | None:
        """Separate connections: a commit that waits for its turn must not take one from a running commit."""
        engine = _postgres(self._catalog)
        if engine is None:
            return None
        from sqlalchemy import create_engine

        turns = create_engine(engine.url)
        bound_answers(turns, TURN_S)
        return turns

    @property
    def lost(self) -> bool:
        return False  # it is described, and tells by itself what it lacks

    def rows(self) -> None:
        return None  # only its own client knows how to ask it

    def recovered(self) -> Catalog:
        return self._catalog

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
        from pyiceberg.catalog.sql import SqlCatalog
        from pyiceberg.utils.config import Config
        from sqlalchemy import make_url

        with reaching(self.where):
            described = self._described(Config())
            check_described(described)
            if (uri := str(described.get("uri", ""))) and _is_database(uri):
                _check_address(self.where, uri)
            given = described | _left_open(described)
            opens = partial(retrying(), load_catalog, self._name, **given)
            if uri and _is_libpq(uri):  # it makes its tables at once, on an engine that only then can be told
                opens = partial(while_restarting, make_url(uri), opens)
            catalog = within(OPENING_S, opens)
        catalog.properties = {PY_IO_IMPL: REMOTE_IO, **catalog.properties}
        engine = _postgres(catalog)
        if engine is not None:
            connect_with_retries(engine)
            _bound_transactions(engine)
            bound_answers(engine, ANSWER_S)
        elif isinstance(session := getattr(catalog, "_session", None), Session):
            bound_session(session)
        return by_configuration(committing_as_loaded(catalog) if isinstance(catalog, SqlCatalog) else catalog)

    def _described(self, config: Config) -> dict[str, Any]:
        """What PyIceberg's configuration says of it. Raises `WarehouseError`, with the names that there are."""
        described = config.get_catalog_config(self._name)
        if described:
            return dict(described)
        known = sorted(config.get_known_catalogs())
        there = f"it describes {', '.join(known[:SHOWN])}" if known else "it describes no catalogs"
        if len(known) > SHOWN:
            there += f" and {len(known) - SHOWN} more"
        variable = f"PYICEBERG_CATALOG__{self._name.upper()}__URI"
        raise WarehouseError(
            f"PyIceberg's configuration does not describe a catalog {self._name}: {there}",
            hint=nearest(
                self._name.lower(), known, f"describe it in ~/.pyiceberg.yaml, or in variables such as {variable}"
            ),
        )


def _postgres(catalog: Catalog) -> Engine | None:
    engine: Engine | None = getattr(catalog, "engine", None)
    return engine if engine is not None and engine.dialect.name == "postgresql" else None


def _left_open(described: Mapping[str, Any]) -> dict[str, str]:
    """What to say of a catalog beside its description; nothing, except for an SQL catalog."""
    uri = str(described.get("uri", ""))
    if not _is_database(uri):
        return {}
    # `waits/sql.py` pings connections itself; SQLAlchemy's own ping has no deadline.
    return {"uri": _bounded(uri), "pool_pre_ping": "false" if _is_libpq(uri) else "true"}


def _check_address(where: str, uri: str) -> None:
    """Raises `WarehouseError` for a URI that would be split wrongly: errors would then show a password."""
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        url = make_url(uri)
    except (ArgumentError, ValueError):
        raise WarehouseError(f"{where}: its uri cannot be read", hint=_FORM) from None
    if "@" in f"{url.host}{url.database}":
        raise WarehouseError(f"{where}: its uri has more than one '@'", hint=_FORM)


def _is_database(uri: str) -> bool:
    """Whether it is an address of SQLAlchemy's, and not the address of a catalog service."""
    return not uri.startswith(("http://", "https://", "thrift://"))


def _is_libpq(uri: str) -> bool:
    from sqlalchemy import make_url

    return make_url(uri).drivername in LIBPQ_DRIVERS


def _bounded(uri: str) -> str:
    from sqlalchemy import make_url

    if not _is_libpq(uri):
        return uri
    url = with_driver(make_url(uri))
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


def bound_session(session: Session) -> None:
    """All requests of a session, from now on."""
    for prefix in ("https://", "http://"):
        session.mount(prefix, _BoundedAdapter())


class _BoundedAdapter(HTTPAdapter):
    def send(self, request: PreparedRequest, *more: Any, **given: Any) -> Response:
        """Raises `ReadTimeout`, after which it is unknown whether the request was done."""
        if given.get("timeout") is None:
            given["timeout"] = REQUEST_TIMEOUTS_S
        try:
            return within(REQUEST_S, partial(self._answered, request, *more, **given))
        except TimeoutError as error:
            raise ReadTimeout(f"{request.method} {request.url}: {error}", request=request) from error

    def _answered(self, request: PreparedRequest, *more: Any, **given: Any) -> Response:
        response = super().send(request, *more, **given)
        response.content  # noqa: B018 - read here, so that the time is for all of it
        return response
