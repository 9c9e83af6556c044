"""Syncs files to disk before a commit refers to them, so that they survive a power cut (C6).

    segment, manifest, metadata.json ── write, fsync, close, fsync of the folder ──► swap in the catalog

Object stores are durable on close; local disks need fsync. Write-back of large files is started early, so
that the final fsync has little left to do.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from lithify.columnar.files.access import local_path
from lithify.columnar.files.replaced import sync_folder

EARLY_BYTES = 2**20
"""Below this size write-back is not started early: it would slow small appends and save nothing."""


def make_lasting(location: str) -> None:
    """Fsyncs a closed local file and its folder; does nothing for remote files. Raises `OSError`."""
    local = local_path(location)
    if local is None:
        return
    path = Path(local)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    sync_folder(path.parent)


def start_writing(location: str, start: int, size: int) -> None:
    """Starts write-back of `size` bytes at `start` of a file that is still being written, without waiting.

    Only a hint, and only on Linux: `make_lasting` guarantees durability.
    """
    local = local_path(location)
    if local is None or size < EARLY_BYTES or sys.platform != "linux":
        return
    with Path(local).open("rb") as file, suppress(OSError):  # some file systems do not support it
        # For dirty pages this starts the write-back; it evicts only clean ones.
        os.posix_fadvise(file.fileno(), start, size, os.POSIX_FADV_DONTNEED)
