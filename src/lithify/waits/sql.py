"""Database connections whose answers have a deadline (C50).

    taken out of the pool   it answers a ping within PING_S, or another connection is made
    until it goes back      so many seconds for all that is asked, or its socket is shut

    a server that restarts  connecting is retried for PATIENCE_S: by an engine (`connect_patiently`), or for a call
                            that makes an engine itself (`while_restarting`)

A server's own timeouts do not help against one that is silent, nor do those of TCP against one that
sends a byte now and then. A caller that holds a connection without a statement says so (`let_wait`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, Engine, event
from sqlalchemy.exc import InvalidatePoolError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from lithify.waits.deadline import AnswerDeadline

T = TypeVar("T")

PING_S = 5.0

PATIENCE_S = 10.0
"""A server's restart takes less; during a commit it leaves the outcome unknown unless the catalog can be read soon
after."""
MAX_PAUSE_S = 0.5

_FOR_GOOD = ("authentication failed", "no password supplied", "pg_hba.conf", "does not exist")
"""What PostgreSQL says to a client that it will not let in, however often it asks."""

_DEADLINE, _IS_NEW = "lithify.answer_deadline", "lithify.is_new"


def bound_answers(engine: Engine, seconds: float) -> None:
    """Sets the deadline for all connections of an engine whose driver has the descriptor of its socket."""

    def begin(dbapi_connection: Any, record: ConnectionPoolEntry) -> None:
        _begin(dbapi_connection, record.info, seconds)

    def take(dbapi_connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
        if not record.info.pop(_IS_NEW, False):
            _begin(dbapi_connection, record.info, PING_S)
            try:
                engine.dialect.do_ping(dbapi_connection)
            except engine.dialect.loaded_dbapi.Error:
                raise InvalidatePoolError() from None
            finally:
                _end(record.info)
        begin(dbapi_connection, record)

    def make(dbapi_connection: Any, record: ConnectionPoolEntry) -> None:
        record.info[_IS_NEW] = True
        begin(dbapi_connection, record)

    def ask(connection: Connection) -> None:
        if not connection.invalidated:  # else asking for it would raise, and hide why it was lost
            _begin(connection.connection.dbapi_connection, connection.info, seconds)

    def end(_dbapi_connection: Any, record: ConnectionPoolEntry) -> None:
        _end(record.info)

    # `insert`: before SQLAlchemy's own first questions on a new connection, whose answers may not come either.
    event.listen(engine, "connect", make, insert=True)
    event.listen(engine, "checkout", take)
    event.listen(engine, "commit", ask)
    event.listen(engine, "rollback", ask)
    for done in ("checkin", "close"):
        event.listen(engine, done, end)


def let_wait(connection: Connection) -> None:
    """Suspends the deadline until the connection is committed or rolled back."""
    _end(connection.info)


def connect_patiently(engine: Engine, *, only_first: bool = False) -> None:
    """Connecting is retried while the server restarts; with `only_first` once in the life of the engine."""
    is_over = False

    def connect(dialect: Dialect, _record: object, arguments: list[Any], parameters: dict[str, Any]) -> Any:
        nonlocal is_over
        if is_over:
            return dialect.connect(*arguments, **parameters)
        is_over = only_first
        return _patient(dialect.loaded_dbapi.OperationalError)(dialect.connect, *arguments, **parameters)

    event.listen(engine, "do_connect", connect)


def while_restarting(call: Callable[[], T]) -> T:
    """What `call` returns, which connects to a PostgreSQL and may be repeated."""
    return _patient(OperationalError)(call)


def _patient(kind: type[Exception]) -> Retrying:
    def may_pass(error: BaseException) -> bool:
        return isinstance(error, kind) and not any(text in str(error) for text in _FOR_GOOD)

    return Retrying(
        retry=retry_if_exception(may_pass),
        stop=stop_after_delay(PATIENCE_S),
        wait=wait_random_exponential(multiplier=0.05, max=MAX_PAUSE_S),
        reraise=True,
    )


def _begin(dbapi_connection: Any, info: dict[Any, Any], seconds: float) -> None:
    deadline: AnswerDeadline = info.setdefault(_DEADLINE, AnswerDeadline())
    if not dbapi_connection.closed:
        with suppress(OSError):  # the connection is broken: no thread will wait for it
            deadline.begin(dbapi_connection.fileno(), seconds)


def _end(info: dict[Any, Any]) -> None:
    if _DEADLINE in info:
        info[_DEADLINE].end()
