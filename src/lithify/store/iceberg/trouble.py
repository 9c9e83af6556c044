"""What can be wrong with a warehouse, as errors that say what to do next.

    OSError of a file, error of the catalog ──► WarehouseError (full, read-only, locked, unreachable)

A commit asks `moved_on` and `never_landed` about an error of the catalog: only what certainly came
before the swap is a conflict or a plain failure, everything else leaves the outcome unknown (C6).
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    NotInstalledError,
    OAuthError,
    RESTError,
    UnauthorizedError,
)
from sqlalchemy.exc import DBAPIError

from lithify.errors import LithifyError, WarehouseError

_FULL = "free some space and try again; nothing was lost"
_READ_ONLY = "make it writable for this user, or use another warehouse; nothing was changed"

_FILE_TROUBLE = {
    errno.ENOSPC: ("no space is left", _FULL),
    errno.EDQUOT: ("the quota is used up", _FULL),
    errno.EFBIG: ("a file would get larger than this process may write", _FULL),
    errno.EROFS: ("it is read-only", _READ_ONLY),
    errno.EACCES: ("it is not writable", _READ_ONLY),
    errno.EPERM: ("it is not writable", _READ_ONLY),
    errno.ENOTDIR: ("a file stands where a folder has to be", "move the file away; nothing was changed"),
    errno.ENAMETOOLONG: ("a path in it gets too long", "use a warehouse with a shorter path; nothing was changed"),
}

_SQLITE_TROUBLE = {
    sqlite3.SQLITE_FULL: _FILE_TROUBLE[errno.ENOSPC],
    sqlite3.SQLITE_READONLY: _FILE_TROUBLE[errno.EROFS],
    sqlite3.SQLITE_PERM: _FILE_TROUBLE[errno.EACCES],
    sqlite3.SQLITE_CANTOPEN: ("its catalog.db cannot be opened", _READ_ONLY),
    sqlite3.SQLITE_BUSY: ("its catalog.db stayed locked", "end the program that holds it, and try again"),
    sqlite3.SQLITE_NOTADB: ("its catalog.db is no catalog", "restore it from a backup, or use another warehouse"),
    sqlite3.SQLITE_CORRUPT: ("its catalog.db is damaged", "restore it from a backup"),
}

_SEQUENCE_CONFLICT = "Cannot add snapshot with sequence number"
_GONE = "NoSuchTable"
"""How PyIceberg passes on a catalog service's 404, which it has no exception for in a commit."""

_REFUSED = (BadRequestError, UnauthorizedError, ForbiddenError, OAuthError, NotInstalledError)


def moved_on(error: Exception) -> bool:
    """Whether an error of a commit says that the table is at another version by now, or gone."""
    match error:
        case CommitFailedException() | NoSuchTableError():
            return True
        case ValueError():
            return _SEQUENCE_CONFLICT in str(error)
        case RESTError():
            return str(error).startswith(_GONE)
        case _:
            return False


def never_landed(error: Exception) -> bool:
    """Whether an error of a commit certainly came before the swap, or took it back.

    Files are written before it; SQLite takes a transaction back that it could not write.
    """
    return isinstance(error, _REFUSED) or _known(error) is not None


def warehouse_error(where: str, error: Exception) -> WarehouseError:
    """The error for a person, of whatever went wrong at `where`."""
    known = _known(error)
    if known is not None:
        what, hint = known
        return WarehouseError(f"{where}: {what}", hint=hint)
    text = " ".join(str(error).split())[:300] or type(error).__name__
    return WarehouseError(
        f"{where} cannot be reached: {text}", hint="look at it, or at its configuration, and try again"
    )


@contextmanager
def reaching(where: str) -> Iterator[None]:
    """Turns everything that goes wrong with files and catalog into a `WarehouseError`."""
    try:
        yield
    except LithifyError:
        raise
    except Exception as error:
        raise warehouse_error(where, error) from error


@contextmanager
def writing(where: str) -> Iterator[None]:
    """Turns an `OSError` of writing a file into a `WarehouseError`."""
    try:
        yield
    except OSError as error:
        raise warehouse_error(where, error) from error


def _known(error: Exception) -> tuple[str, str] | None:
    if isinstance(error, OSError) and error.errno is not None:
        return _FILE_TROUBLE.get(error.errno)
    if isinstance(error, DBAPIError) and isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", None)
        return None if code is None else _SQLITE_TROUBLE.get(code & 0xFF)
    return None
