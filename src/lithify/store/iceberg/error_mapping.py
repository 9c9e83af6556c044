"""What can be wrong with a warehouse, as errors that say what to do next.

    OSError of a file, error of the catalog ──► WarehouseError (full, read-only, locked, unreachable)

A commit asks `moved_on` and `never_landed` about an error of the catalog: only what certainly came
before the swap is a conflict or a plain failure, everything else leaves the outcome unknown (C6).
"""

from __future__ import annotations

import errno
import re
import sqlite3

from pydantic import ValidationError
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    NotInstalledError,
    OAuthError,
    RESTError,
    ServiceUnavailableError,
    UnauthorizedError,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from lithify.errors import WarehouseError
from lithify.errors.extras import POSTGRES_URL, lacks_postgres
from lithify.errors.redaction import one_line
from lithify.waits.postgres import sqlstate
from lithify.waits.sql import is_outage

_FULL = "free some space and try again; nothing was lost"
_READ_ONLY = "make it writable for this user, or use another warehouse; nothing was changed"

_FILE_ERRORS = {
    errno.ENOSPC: ("no space is left", _FULL),
    errno.EDQUOT: ("the quota is used up", _FULL),
    errno.EFBIG: ("a file would be larger than this process may write", _FULL),
    errno.EROFS: ("it is read-only", _READ_ONLY),
    errno.EACCES: ("it is not writable", _READ_ONLY),
    errno.EPERM: ("it is not writable", _READ_ONLY),
    errno.ENOTDIR: ("a file is in the place of a folder", "move the file away; nothing was changed"),
    errno.ENAMETOOLONG: ("a path in it would be too long", "use a warehouse with a shorter path; nothing was changed"),
}

_MOVED = "move it back, or mount its disk, then try again; nothing was changed"
_NO_CATALOG = "restore a copy that is as new as the topics, or move it away: `lithify repair` recreates it from them"

_SQLITE_ERRORS = {
    sqlite3.SQLITE_FULL: _FILE_ERRORS[errno.ENOSPC],
    sqlite3.SQLITE_READONLY: _FILE_ERRORS[errno.EROFS],
    sqlite3.SQLITE_READONLY_DBMOVED: ("its catalog.db was moved or deleted while it was used", _MOVED),
    sqlite3.SQLITE_PERM: _FILE_ERRORS[errno.EACCES],
    sqlite3.SQLITE_CANTOPEN: (
        "its catalog.db is missing or cannot be opened",
        "mount its disk, or make it readable and writable for this user; nothing was changed",
    ),
    sqlite3.SQLITE_BUSY: ("its catalog.db stayed locked", "stop the program that locks it, and try again"),
    sqlite3.SQLITE_NOTADB: ("its catalog.db is not a catalog", _NO_CATALOG),
    sqlite3.SQLITE_CORRUPT: ("its catalog.db is damaged", _NO_CATALOG),
}

_SQLITE_WRITES = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)
"""I/O errors that come before the journal is removed, so that the transaction is rolled back. Others may come after."""
_NOT_WRITTEN = ("its catalog.db could not be written", "check the disk; nothing was lost")

_CREDENTIALS = "check the credentials in the catalog's configuration; nothing was changed"

_S3_ERROR = re.compile(r"AWS Error (?P<code>[^:]+?) during (?P<operation>\w+) operation: (?P<text>.*)", re.DOTALL)
"""How Arrow reports an error of S3: a code of the AWS SDK, or `UNKNOWN (HTTP status 503)`."""

_S3_ERRORS = {
    "ACCESS_DENIED": ("access to it is refused", _CREDENTIALS),
    "INVALID_ACCESS_KEY_ID": ("it does not accept this access key", _CREDENTIALS),
    "SIGNATURE_DOES_NOT_MATCH": ("the secret key does not match the access key", _CREDENTIALS),
    "NO_SUCH_BUCKET": ("there is no such bucket", "create it, or correct the catalog's configuration"),
}

_S3_AWAY = re.compile(r"curlCode: (7|28|52|55|56)\b|AWS Error (SLOW_DOWN|SERVICE_UNAVAILABLE)|HTTP status 50[234]")
"""Of a store that does not take connections or answers too late, by curl's numbers, or says that it is overloaded."""
_UNKNOWN_HOST = ("Name or service not known", "nodename nor servname", "No address associated")
_GATEWAY = ("RESTError 502", "RESTError 503", "RESTError 504")
"""How PyIceberg passes on a page of the proxy in front of a catalog service."""

_BEGIN_AGAIN = ("40001", "40P01")
"""PostgreSQL rolled the transaction back: a serialization failure or a deadlock."""
_NOT_CONNECTED = "connection to server"
"""What libpq reports when it could not connect."""

_SEQUENCE_CONFLICT = "Cannot add snapshot with sequence number"
_GONE = "NoSuchTable"
"""How PyIceberg passes on a catalog service's 404, which it has no exception for in a commit."""

_REFUSED = (BadRequestError, UnauthorizedError, ForbiddenError, OAuthError, NotInstalledError)


def moved_on(error: Exception) -> bool:
    """Whether an error of a commit says that the table is at another version now, or gone."""
    match error:
        case CommitFailedException() | NoSuchTableError():
            return True
        case DBAPIError():
            return sqlstate(error.orig) in _BEGIN_AGAIN
        case ValueError():
            return _SEQUENCE_CONFLICT in str(error)
        case RESTError():
            return str(error).startswith(_GONE)
        case _:
            return False


def never_landed(error: Exception) -> bool:
    """Whether an error of a commit certainly came before the swap, or rolled it back.

    Files are written before it; SQLite rolls back a transaction that it could not write. In any
    database a statement that fails rolls back the whole transaction: only the answer to COMMIT, which
    SQLAlchemy has no statement for, can get lost when all is done.
    """
    match error:
        case WarehouseError() | PoolTimeoutError():
            return True
        case DBAPIError() if error.statement is not None or str(error.orig).startswith(_NOT_CONNECTED):
            return True
        case _:
            return isinstance(error, _REFUSED) or _known(error) is not None


def already_exists(error: BaseException) -> bool:
    """Whether another program created the tables of an SQL catalog first."""
    return isinstance(error, DBAPIError) and "already exists" in str(error)


def warehouse_error(where: str, error: Exception) -> WarehouseError:
    """The error of ours, with a remedy, for any exception at `where`."""
    if isinstance(error, WarehouseError):
        same = WarehouseError(error.message, hint=error.hint)
        same.is_outage = error.is_outage
        return same
    known = _known(error)
    if known is not None:
        what, hint = known
        return WarehouseError(f"{where}: {what}", hint=hint)
    unreachable = WarehouseError(
        f"{where} cannot be reached: {reason_of(error)}",
        hint="check that it runs, and check its configuration; then try again",
    )
    unreachable.is_outage = _is_outage(error)
    return unreachable


def _known(error: Exception) -> tuple[str, str] | None:
    if (driver := lacks_postgres(error)) is not None:
        return f"the driver of its database, {driver}, is not installed", f"{POSTGRES_URL}; nothing was changed"
    if isinstance(error, OSError) and error.errno is not None:
        return _FILE_ERRORS.get(error.errno)
    if isinstance(error, OSError) and (match := _S3_ERROR.search(str(error))):
        return _S3_ERRORS.get(match["code"])
    of_driver = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(of_driver, sqlite3.Error):
        code = getattr(of_driver, "sqlite_errorcode", None)
        if code in _SQLITE_WRITES:
            return _NOT_WRITTEN
        return None if code is None else _SQLITE_ERRORS.get(code) or _SQLITE_ERRORS.get(code & 0xFF)
    return None


def _is_outage(error: Exception) -> bool:
    """Whether a catalog or store is away, and perhaps only for a while. Not an unknown host, nor wrong TLS."""
    from requests.exceptions import ConnectionError as UnconnectedError  # only here, as commits import this module
    from requests.exceptions import SSLError, Timeout

    match error:
        case ServiceUnavailableError() | TimeoutError() | ConnectionError() | Timeout():
            return True
        case UnconnectedError():
            return not isinstance(error, SSLError) and not any(text in str(error) for text in _UNKNOWN_HOST)
        case RESTError():
            return str(error).startswith(_GATEWAY)
        case OSError():
            return _S3_AWAY.search(str(error)) is not None
        case _:
            return is_outage(error)


def reason_of(error: Exception) -> str:
    """What is said of an error that nothing better is known of, on one line."""
    text = str(error)
    invalid = error if isinstance(error, ValidationError) else error.__cause__  # PyIceberg raises one of its own
    if isinstance(invalid, ValidationError):  # whose text shows what is there, and a link to Pydantic's pages
        first = invalid.errors(include_url=False, include_input=False)[0]
        text = ": ".join([*map(str, first["loc"]), first["msg"]])
    elif isinstance(error, DBAPIError) and error.orig is not None:
        text = str(error.orig)  # without the statement, and a link to SQLAlchemy's pages
    elif match := _S3_ERROR.search(text):
        text = f"{match['code']} during {match['operation']}: {match['text']}"
    return one_line(text, 300) or type(error).__name__
