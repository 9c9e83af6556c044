"""Database connections whose answers have a deadline (C50).

    taken out of the pool   it answers a ping within PING_S, or another connection is made
    until it goes back      so many seconds for all that is asked, or its socket is shut

A server's own timeouts do not help against one that is silent, nor do those of TCP against one that
sends a byte now and then. A caller that holds a connection without a statement says so (`let_wait`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry

from lithify.waits.deadline import AnswerDeadline

PING_S = 5.0
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


def _begin(dbapi_connection: Any, info: dict[Any, Any], seconds: float) -> None:
    deadline: AnswerDeadline = info.setdefault(_DEADLINE, AnswerDeadline())
    if not dbapi_connection.closed:
        with suppress(OSError):  # the connection is broken: no thread will wait for it
            deadline.begin(dbapi_connection.fileno(), seconds)


def _end(info: dict[Any, Any]) -> None:
    if _DEADLINE in info:
        info[_DEADLINE].end()
