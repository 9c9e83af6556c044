"""Whole folders of files, wherever the warehouse is."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyiceberg.io import FileIO

from lithify.columnar.access import local_path


def delete_folder(location: str, io: FileIO) -> None:
    """Deletes a folder and everything in it, if it is there. Raises `OSError`."""
    local = local_path(location)
    if local is not None:
        if Path(local).exists():
            shutil.rmtree(local)
        return
    from pyiceberg.io.pyarrow import PyArrowFileIO  # takes half a second to import

    scheme, netloc, path = PyArrowFileIO.parse_location(location)
    filesystem = PyArrowFileIO(io.properties).fs_by_scheme(scheme, netloc)
    filesystem.delete_dir_contents(path, missing_dir_ok=True)


def free_bytes(location: str) -> int | None:
    """Free space where a local folder is or will be; None for other places."""
    local = local_path(location)
    if local is None:
        return None
    folder = Path(local)
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
