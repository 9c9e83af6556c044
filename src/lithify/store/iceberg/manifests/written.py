"""Files of metadata that are read: whether they are what was written, and what names those that are not (C8, C48)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lithify.columnar.files.sealed import checksum_of
from lithify.errors import DamagedError, LithifyError
from lithify.errors.redaction import one_line
from lithify.store.iceberg.io.checksums import RESTORE, Stated
from lithify.store.iceberg.io.file_cache import FILE_CACHE


def check_written(path: str, content: bytes, stated: Stated) -> None:
    """Raises `DamagedError` if the whole content of a file is not what the file that names it states."""
    if len(content) != stated.size_bytes:
        raise not_written(path, f"it has {len(content)} bytes, but {stated.size_bytes} were written")
    if stated.checksum not in (None, checksum_of(content)):
        raise not_written(path, "its checksum differs")


def not_written(path: str, why: str) -> DamagedError:
    FILE_CACHE.drop(path)  # the next read opens the file: it may be intact, or restored
    return DamagedError(f"{path}: the file is not what was written: {why}", hint=RESTORE)


@contextmanager
def damage_named(path: str) -> Iterator[None]:
    """Turns any exception of a reader into a `DamagedError` of the file."""
    try:
        yield
    except LithifyError:
        raise  # an unreachable store is no damage; a `DamagedError` says enough
    except FileNotFoundError as error:
        raise DamagedError(f"{path}: the file is missing", hint=RESTORE) from error
    except Exception as error:
        why = one_line(repr(error), 300)
        raise DamagedError(f"{path}: the file cannot be read: {why}", hint=RESTORE) from error
