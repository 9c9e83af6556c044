"""Database connections whose answers have a deadline (C50).

    taken out of the pool   it answers a ping within PING_S, or another connection is made
    until it goes back      so many seconds for all that is asked, or its socket is shut

    a server that restarts  connecting is retried for PATIENCE_S: by an engine (`connect_with_retries`), or for a call
                            that makes an engine itself (`while_restarting`); a daemon that starts waits for as
                            long as it is away (`is_outage`)

An error is judged by its SQLSTATE and by what SQLAlchemy knows of the connection. Where none was made there is only a
text, which may be in any language: unless it is a known one, `postgres.py` asks the server.

A server's own timeouts do not help against one that is silent, nor do TCP's timeouts against one that
sends a byte now and then. A caller that holds a connection without a statement declares it (`let_wait`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Dialect, Engine, event
from sqlalchemy.exc import DBAPIError, InvalidatePoolError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry
from tenacity import (
    Retrying,
    retry_if_exception,
    sleep_using_event,
    stop_after_delay,
    stop_any,
    stop_when_event_set,
    wait_random_exponential,
)

from lithify.waits.deadline import ENDING, AnswerDeadline
from lithify.waits.postgres import note_why, says_away, sqlstate

T = TypeVar("T")

PING_S = 5.0

PATIENCE_S = 10.0
"""A server's restart takes less; during a commit it leaves the outcome unknown unless the catalog can be read soon
after."""
MAX_PAUSE_S = 0.5

_FOR_GOOD = ("authentication failed", "no password supplied", "pg_hba.conf", "does not exist")
"""What PostgreSQL says to a client that it will not let in, however often it asks."""

_AWAY = (
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "No route to host",
    "Network is unreachable",
    "Host is down",
    "timeout expired",
    "Temporary failure in name resolution",
    "Is the server running locally",
    "server closed the connection",
    "is starting up",
    "is shutting down",
    "in recovery mode",
    "not accepting connections",
    "not yet accepting connections",
    "too many clients",
    "remaining connection slots",
)
"""What libpq and PostgreSQL say of a server that may be back by itself. Not for an unknown host name."""

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


def connect_with_retries(engine: Engine, *, only_first: bool = False) -> None:
    """Connecting is retried while the server restarts; with `only_first` once in the life of the engine."""
    is_over = False

    def connect(dialect: Dialect, _record: object, arguments: list[Any], parameters: dict[str, Any]) -> Any:
        nonlocal is_over
        tries = dialect.connect if is_over else _patient(dialect.loaded_dbapi.OperationalError).wraps(dialect.connect)
        is_over = only_first
        try:
            return tries(*arguments, **parameters)
        except dialect.loaded_dbapi.OperationalError as error:
            _explained(error, engine.url)
            raise

    event.listen(engine, "do_connect", connect)


def while_restarting(url: URL, call: Callable[[], T]) -> T:
    """What `call` returns, which connects to the PostgreSQL at that URL and may be repeated."""
    try:
        return _patient(OperationalError)(call)
    except OperationalError as error:
        if error.orig is not None:
            _explained(error.orig, url)
        raise


def is_outage(error: BaseException) -> bool:
    """Whether an error of a database says that its server is away, and perhaps only for a while."""
    if not isinstance(error, DBAPIError) or error.orig is None:
        return False
    if (code := sqlstate(error.orig)) is not None:
        return says_away(code) or error.connection_invalidated
    return not _is_for_good(error) and (error.connection_invalidated or _is_known(error.orig))


def _explained(error: BaseException, url: URL) -> None:
    """Sees to it that `is_outage` can tell, whatever language the error of a connection is in."""
    if not (_is_for_good(error) or _is_known(error)):
        note_why(error, url)


def _is_for_good(error: BaseException) -> bool:
    return any(text in str(error) for text in _FOR_GOOD)


def _is_known(error: BaseException) -> bool:
    return any(text in str(error) for text in _AWAY)


def _patient(kind: type[Exception]) -> Retrying:
    def may_pass(error: BaseException) -> bool:
        return isinstance(error, kind) and not _is_for_good(error)

    return Retrying(
        retry=retry_if_exception(may_pass),
        stop=stop_any(stop_after_delay(PATIENCE_S), stop_when_event_set(ENDING)),
        sleep=sleep_using_event(ENDING),
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
