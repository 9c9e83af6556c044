"""Opens files of a warehouse on a local disk or any store that PyIceberg supports.

A `FileAccess` is a small value that is serialised to Spark tasks. Local paths are opened directly, so
that a task on a local warehouse need not import PyIceberg, nor a verb that reads small files alone PyArrow.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lithify.errors import DamagedError
from lithify.model.settings.secrets import keep
from lithify.model.stored_file import LOCAL_SCHEME

SMALL_BYTES = 64 * 2**20
"""The largest file, other than a segment, that is read whole."""


@dataclass(frozen=True, slots=True)
class FileAccess:
    """How to open the files of a warehouse. `properties` are for PyIceberg's FileIO.

    Opening, reading or writing a file of a remote warehouse that cannot be reached raises `WarehouseError`.
    """

    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # may include credentials

    def open(self, path: str) -> Any:
        """Opens a file for seekable reads. Raises `FileNotFoundError`, `OSError`, or `DamagedError` for a non-file."""
        local = local_path(path)
        if local is not None:
            import pyarrow

            check_file(path, Path(local).stat())
            return pyarrow.OSFile(local, "rb")
        return self._io(path).new_input(path).open(seekable=True)

    def read(self, path: str) -> bytes:
        """The content of a small file. Raises as `open` does, and `DamagedError` above `SMALL_BYTES` (C48)."""
        local = local_path(path)
        if local is not None:
            status = Path(local).stat()
            check_file(path, status)
            check_small(path, status.st_size)
            return Path(local).read_bytes()
        with self.open(path) as source:
            check_small(path, source.seek(0, 2))
            source.seek(0)
            return bytes(source.read())

    def create(self, path: str) -> Any:
        """Creates a file and its folders, open for writing. Raises `OSError`; on a local disk also `FileExistsError`.

        An object store makes a file visible when it is closed, and overwrites an existing one. Names of segments
        are unique per attempt, so an existence check would cost a request and, being racy, prove nothing.
        """
        local = local_path(path)
        if local is None:
            return self._io(path).new_output(path).create(overwrite=True)
        from pyarrow import fs

        make_folders(Path(local))
        os.close(os.open(local, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        return fs.LocalFileSystem().open_output_stream(local)

    def delete(self, path: str) -> None:
        """Deletes a file. Raises `OSError`, or `WarehouseError`."""
        local = local_path(path)
        if local is not None:
            Path(local).unlink()
        else:
            self._io(path).delete(path)

    def _io(self, path: str) -> Any:
        from pyiceberg.io import load_file_io

        keep(self.properties)  # in a task too, whose process has read no configuration
        _keep_ambient_secrets_once()
        return load_file_io(dict(self.properties), path)


@cache
def _keep_ambient_secrets_once() -> None:
    from lithify.columnar.files.ambient_secrets import keep_ambient_secrets

    keep_ambient_secrets()


def make_folders(file: Path) -> None:
    """Creates the two folders above a file, and no more: raises `FileNotFoundError` if the one above them is gone.

    So nothing is written into the mount point of a warehouse whose disk was unmounted meanwhile.
    """
    file.parent.parent.mkdir(exist_ok=True)
    file.parent.mkdir(exist_ok=True)


def check_file(path: str, status: os.stat_result) -> None:
    """Raises `DamagedError` for a pipe, a device or a folder, whose reads may block or never end."""
    if not stat.S_ISREG(status.st_mode):
        raise DamagedError(
            f"{path}: it is no longer a file, but a {_KINDS.get(stat.S_IFMT(status.st_mode), 'special file')}",
            hint="restore it from a backup; nothing was changed",
        )


_KINDS = {stat.S_IFDIR: "folder", stat.S_IFIFO: "pipe", stat.S_IFCHR: "device", stat.S_IFSOCK: "socket"}


def check_small(path: str, size_bytes: int) -> None:
    """Raises `DamagedError` for a file too large to be read whole."""
    if size_bytes > SMALL_BYTES:
        raise DamagedError(
            f"{path}: the file has {size_bytes} bytes, but a file of this kind has at most {SMALL_BYTES}",
            hint="restore it from a backup; nothing was changed",
        )


_SAME_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}


def normal_form(path: str) -> str:
    """The canonical spelling of a path: for comparing paths, not for opening files.

    A local path loses its scheme, `.`, `..` and double slashes; of a remote one the scheme is normalised.
    """
    scheme, colon, rest = path.partition(":")
    if colon and scheme.lower() == "file":
        path = "/" + rest.lstrip("/")
    elif colon and "/" not in scheme:
        return f"{_SAME_SCHEMES.get(scheme.lower(), scheme.lower())}:{rest.rstrip('/')}"
    return "/" + os.path.normpath(path).lstrip("/")


def local_path(path: str) -> str | None:
    """`path` as a path of the local file system, or None if it is remote, as `file://HOST/DIR` is."""
    path = LOCAL_SCHEME.sub("", path)
    return path if path.startswith("/") else None
