"""Files that last through a power cut: on disk, not only written, before a commit names them (C6).

    segment, manifest, metadata.json ── write, fsync, close, fsync of the folder ──► swap in the catalog

An object store does this by itself; a local disk has to be asked. Large files it is asked for early, so
that at the end there is little left to wait for.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from lithify.columnar.files.access import local_path

EARLY_BYTES = 2**20
"""Fewer are written soon enough at the end: to have the disk begin with them would only cost small appends time."""


def make_lasting(location: str) -> None:
    """Waits until a file that was closed, and its name, have reached the disk; elsewhere does nothing."""
    local = local_path(location)
    if local is None:
        return
    path = Path(local)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    sync_folder(path.parent)


def start_writing(location: str, start: int, size: int) -> None:
    """Has the disk begin with these bytes of a file that is being written, without waiting for it.

    Only a hint, and only on Linux: `make_lasting` waits for the rest.
    """
    local = local_path(location)
    if local is None or size < EARLY_BYTES or sys.platform != "linux":
        return
    with Path(local).open("rb") as file, suppress(OSError):  # a file system may not know it
        # For dirty pages this starts the write-back; it evicts only clean ones.
        os.posix_fadvise(file.fileno(), start, size, os.POSIX_FADV_DONTNEED)


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder have reached the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
