"""Whole folders of files, wherever the warehouse is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from lithify.columnar.files.access import local_path, normal_form
from lithify.model.stored_file import StoredFile
from lithify.store.iceberg.layout import kind_of
from lithify.store.iceberg.reaching import writing

DELETIONS_AT_ONCE = 16
"""Concurrent requests when files of a remote warehouse are deleted."""


def within(location: str, path: str) -> str | None:
    """The path of a file as seen from a folder, however the two are spelled; None if it is not below it."""
    folder, file = normal_form(location), normal_form(path)
    return file[len(folder) + 1 :] if file.startswith(f"{folder}/") else None


def is_below(folder: str, path: str) -> bool:
    """Whether a path is below a folder, whatever links lead to it; of what is remote its spelling tells."""
    if within(folder, path) is not None:
        return True
    root, local = local_path(folder), local_path(path)
    return root is not None and local is not None and any(_same(root, parent) for parent in Path(local).parents)


def _same(folder: str, other: Path) -> bool:
    try:
        return other.samefile(folder)
    except OSError:
        return False


def stored_files(location: str, properties: Mapping[str, str]) -> Iterator[StoredFile]:
    """Every file below a folder, as `<location>/<path within it>`. Raises `OSError`."""
    location = location.rstrip("/")
    local = local_path(location)
    if local is not None:
        for file in sorted(Path(local).rglob("*")):
            with suppress(FileNotFoundError):  # a commit replaces files during the listing
                if file.is_file():
                    status = file.stat()
                    yield _stored(location, str(file)[len(local) + 1 :], status.st_size, status.st_mtime_ns // 10**6)
        return
    from pyarrow.fs import FileSelector, FileType

    filesystem, path = opened(location, properties)
    for info in filesystem.get_file_info(FileSelector(path, recursive=True, allow_not_found=True)):
        if info.type is FileType.File and info.mtime_ns is not None:  # else its age is unknown
            yield _stored(location, info.path[len(path) + 1 :], info.size, info.mtime_ns // 10**6)


def _stored(location: str, relative: str, size_bytes: int, modified_ms: int) -> StoredFile:
    return StoredFile(f"{location}/{relative}", size_bytes, modified_ms, *kind_of(relative))


def delete_files(paths: Sequence[str], properties: Mapping[str, str]) -> None:
    """Deletes files, ignoring missing ones. Raises `OSError`."""
    with ThreadPoolExecutor(DELETIONS_AT_ONCE) as pool:
        list(pool.map(lambda path: _delete(path, properties), paths))


def remove_empty_folders(location: str) -> None:
    """Removes a local folder and those in it, as far as no file is in them; elsewhere there are no folders."""
    local = local_path(location)
    if local is None:
        return
    for folder, _, _ in os.walk(local, topdown=False):
        with suppress(OSError):  # not empty
            Path(folder).rmdir()


def _delete(path: str, properties: Mapping[str, str]) -> None:
    with suppress(FileNotFoundError):
        local = local_path(path)
        if local is not None:
            Path(local).unlink()
        else:
            from pyiceberg.io import load_file_io

            load_file_io(dict(properties), path).delete(path)


def opened(location: str, properties: Mapping[str, str]) -> tuple[Any, str]:
    """The Arrow file system of a folder, and its path there."""
    from lithify.store.iceberg.io.remote_io import RemoteFileIO  # takes half a second to import

    scheme, netloc, path = RemoteFileIO.parse_location(location)
    return RemoteFileIO(dict(properties)).fs_by_scheme(scheme, netloc), path


def create_folder(location: str | None) -> None:
    """Creates a local folder and those above it. Raises `WarehouseError`."""
    local = None if location is None else local_path(location)
    if local is not None:
        with writing(str(location)):
            Path(local).mkdir(parents=True, exist_ok=True)


def is_missing(location: str | None) -> bool:
    """Whether it is a local folder that is not there."""
    local = None if location is None else local_path(location)
    return local is not None and not Path(local).is_dir()


def free_bytes(location: str) -> int | None:
    """Free space where a local folder is or will be; None for other places."""
    local = local_path(location)
    if local is None:
        return None
    folder = Path(local)
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free
