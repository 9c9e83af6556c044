"""PostgreSQL: the driver for it, and what it says by SQLSTATE, as texts are in the language of the server (C50).

a statement failed          the driver has the SQLSTATE
no connection was made      the driver has a text only: the server is asked in its own protocol why it takes none

startup message ─► an error with its SQLSTATE: it takes no connections now
               ├─► it asks for a password: it takes them
               └─► nobody listens, or answers: 08001
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

from lithify.errors.extras import postgres_driver
from lithify.waits.deadline import within

if TYPE_CHECKING:
    from sqlalchemy import URL

ASKED_S = 3.0
"""For the address, the connection and the answer together."""

UNABLE_TO_CONNECT = "08001"
_AWAY = ("08", "53", "57P01", "57P02", "57P03")
"""Connections lost or refused, too many of them or no space, shutdown, crash, and one that is starting up."""

_PROTOCOL = 3 << 16
_DEFAULT_PORT = 5432
_MOST_BYTES = 4096


def with_driver(url: URL) -> URL:
    """The URL, with the driver that is installed if it names none: SQLAlchemy's own choice may be another one."""
    return url.set(drivername=f"postgresql+{postgres_driver()}") if url.drivername == "postgresql" else url


def sqlstate(error: BaseException | None) -> str | None:
    """The SQLSTATE of an error of psycopg2 or psycopg; None for one that has none."""
    return getattr(error, "pgcode", None) or getattr(error, "sqlstate", None)


def says_away(code: str) -> bool:
    """Whether a SQLSTATE comes from a server that may be back by itself."""
    return code.startswith(_AWAY)


def note_why(error: BaseException, url: URL) -> None:
    """Gives the error of a connection that was not made the SQLSTATE that says so, if the server is away."""
    if sqlstate(error) is None and (code := _refusal(url)) is not None and says_away(code):
        error.sqlstate = code  # type: ignore[attr-defined]


def _refusal(url: URL) -> str | None:
    """The SQLSTATE with which the server takes no connections now; None if it does, or its host is unknown."""
    try:
        return within(ASKED_S, lambda: _asked(url))
    except socket.gaierror as error:
        return UNABLE_TO_CONNECT if error.errno == socket.EAI_AGAIN else None
    except (PermissionError, UnicodeError):
        return None
    except OSError:
        return UNABLE_TO_CONNECT


def _asked(url: URL) -> str | None:
    host, database = url.host or url.query.get("host"), url.database or url.username or ""
    if not isinstance(host, str) or "," in host:
        return None
    names = {"user": url.username or "", "database": database}
    body = b"".join(part.encode() + b"\0" for pair in names.items() for part in pair) + b"\0"
    with _connected(host, url.port or _DEFAULT_PORT) as connection:
        connection.sendall(struct.pack("!ii", 8 + len(body), _PROTOCOL) + body)
        kind, *fields = _answer(connection).split(b"\0")
    codes = (field[1:].decode("ascii", "replace") for field in fields if field.startswith(b"C"))
    return next(codes, None) if kind.startswith(b"E") else None


def _connected(host: str, port: int) -> socket.socket:
    if not host.startswith("/"):
        return socket.create_connection((host, port), timeout=ASKED_S)
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(ASKED_S)
    try:
        connection.connect(f"{host}/.s.PGSQL.{port}")
    except BaseException:
        connection.close()
        raise
    return connection


def _answer(connection: socket.socket) -> bytes:
    """The first message, without what is behind it; nothing where the connection was closed."""
    message = b""
    while len(message) < _MOST_BYTES and (more := connection.recv(_MOST_BYTES)):
        message += more
        if len(message) >= 5 and len(message) > struct.unpack("!i", message[1:5])[0]:
            break
    return message[:1] + message[5:]
