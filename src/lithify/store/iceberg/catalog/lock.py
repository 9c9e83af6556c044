"""Turns of committers: for progress only, never for safety (that is the swap's).

    local warehouse                a lock file beside it
    catalog in PostgreSQL          an advisory lock of a transaction of its own, on other connections
    elsewhere                      none: the swap alone decides who is first

Optimistic commits starve slow committers: a round among busy appenders never committed without turns,
on a local disk as over PostgreSQL and S3, where 25 tries in a row came too late.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from lithify.columnar.files.access import local_path
from lithify.model.names import TopicName
from lithify.store.iceberg.layout import lock_file

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from lithify.store.iceberg.catalog.embedded import CatalogSource

MAX_WAIT_S = 10.0
POLL_S = 0.005
HELD_S = 60
"""How long a turn in a database lasts at most: the server ends the turn of a frozen holder."""


def turn_lock(source: CatalogSource, name: TopicName) -> AbstractContextManager[None]:
    """Waits for its turn, at most `MAX_WAIT_S`; then it continues without."""
    folder = None if source.root is None else local_path(source.root)
    if folder is not None:
        return _file_turn(Path(lock_file(folder, name)))
    engine = source.turns
    return nullcontext() if engine is None else _database_turn(engine, f"{source.where}/{name}")


@contextmanager
def _file_turn(path: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=MAX_WAIT_S, poll_interval=POLL_S)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (Timeout, OSError):
        yield  # a holder that hangs, or a file system without locks: the swap decides
        return
    try:
        yield
    finally:
        with suppress(OSError):  # what was committed is committed; filelock tries again once it drops the lock
            lock.release()


@contextmanager
def _database_turn(engine: Engine, what: str) -> Iterator[None]:
    """A transaction that does nothing but hold the lock: a pooler such as PgBouncer keeps it together."""
    from sqlalchemy.exc import SQLAlchemyError

    from lithify.waits.sql import let_wait

    number = int.from_bytes(blake2b(what.encode(), digest_size=8).digest(), "big", signed=True)
    bounds = {"lock_timeout": MAX_WAIT_S, "idle_in_transaction_session_timeout": HELD_S}
    settings = ", ".join(f"set_config('{name}', '{int(seconds * 1000)}', true)" for name, seconds in bounds.items())
    with ExitStack() as held:
        with suppress(SQLAlchemyError):  # no connection, no turn in time: the swap decides
            connection = engine.connect()
            held.callback(_close, connection)
            connection.exec_driver_sql(f"SELECT {settings}")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({number})")
            let_wait(connection)
        yield


def _close(connection: Connection) -> None:
    from sqlalchemy.exc import SQLAlchemyError

    with suppress(SQLAlchemyError):  # the server took it back before us
        connection.close()
