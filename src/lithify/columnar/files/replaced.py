"""Replaces a file of a user as a whole; imports no library that moves data.

    a file of a user ◄── replaced at the end ── .lithify-….new beside it, locked while it is written

A program that is killed leaves its new file behind, unlocked: the next one in the folder deletes it.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mktemp
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new content for a local file, written beside it: a reader sees the old one or the new one, whole.

    Several programs may do that at once: the last one remains. Nobody else may read the new content who may not read
    the old one. Raises `OSError`; what the block raises leaves the file as it was.
    """
    _delete_abandoned(path.parent)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    new = Path(mktemp(".new", ".lithify-", path.parent))
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode & 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if mode is not None:
                with suppress(OSError):  # some file systems have none
                    os.fchmod(descriptor, mode)
            yield file
            file.flush()
            os.fsync(file.fileno())  # without it a power cut may leave an empty file
            new.replace(path)  # while it is locked
    finally:
        new.unlink(missing_ok=True)
    sync_folder(path.parent)


def _delete_abandoned(folder: Path) -> None:
    """What killed programs have left in the folder. An empty file may be about to be locked, and remains."""
    for new in folder.glob(".lithify-*.new"):
        with suppress(OSError):  # locked, gone, another user's
            descriptor = os.open(new, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(file.fileno())
                if stat.S_ISREG(status.st_mode) and status.st_size:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    new.unlink()


def sync_folder(folder: Path) -> None:
    """Fsyncs a folder, which makes the names in it durable. Raises `OSError`."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
