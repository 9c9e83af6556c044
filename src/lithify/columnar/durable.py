"""Files that last through a power cut: on disk, not only written, before a commit names them (C6).

    segment, manifest, metadata.json ── write, fsync, close, fsync of the folder ──► swap in the catalog

An object store does this by itself; a local disk has to be asked.
"""

from __future__ import annotations

import os
from pathlib import Path

from lithify.columnar.access import local_path


def make_lasting(location: str) -> None:
    """Waits until a file that was closed, and its name, have reached the disk; elsewhere does nothing."""
    local = local_path(location)
    if local is None:
        return
    path = Path(local)
    with path.open("rb") as file:
        os.fsync(file.fileno())
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder have reached the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
