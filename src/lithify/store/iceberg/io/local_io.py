"""PyIceberg's files on a local disk: synced to disk before a commit names them.

    manifest, manifest list ── write, fsync ─► metadata.json ── write, fsync, fsync of the folder ──► swap

They are in one folder, so one fsync of it makes all their names durable. SQLite's own commit survives
a power failure, so the files that it points at must survive as well (C6). This class also saves every
command the half second of importing PyIceberg's Arrow file systems.
"""

from __future__ import annotations

import os
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import IO

from pyiceberg.io import FileIO as IcebergFileIO
from pyiceberg.io import InputFile, OutputFile

from lithify.columnar.files.access import check_file, check_small, local_path, make_folders
from lithify.columnar.files.replaced import sync_folder

_LAST_OF_A_COMMIT = ".metadata.json"


class LocalFileIO(IcebergFileIO):
    """Files named by paths and `file://` URIs."""

    def new_input(self, location: str) -> LocalInput:
        return LocalInput(location)

    def new_output(self, location: str) -> LocalOutput:
        return LocalOutput(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Raises `FileNotFoundError`."""
        _path(location if isinstance(location, str) else location.location).unlink()


class LocalInput(InputFile):
    """A file to read."""

    def __len__(self) -> int:
        return _path(self.location).stat().st_size

    def exists(self) -> bool:
        return _path(self.location).is_file()

    def open(self, seekable: bool = True) -> IO[bytes]:
        """Raises `FileNotFoundError`, or `DamagedError` if it is not a file, or too large to be metadata."""
        path = _path(self.location)
        status = path.stat()
        check_file(self.location, status)
        check_small(self.location, status.st_size)
        return path.open("rb")


class LocalOutput(OutputFile):
    """A file to write; creates its folders, but not its stream's."""

    def __len__(self) -> int:
        return _path(self.location).stat().st_size

    def exists(self) -> bool:
        return _path(self.location).is_file()

    def to_input_file(self) -> LocalInput:
        return LocalInput(self.location)

    def create(self, overwrite: bool = False) -> LastingWriter:
        """Raises `FileExistsError` unless `overwrite`, and as `make_folders`."""
        path = _path(self.location)
        make_folders(path)
        return LastingWriter(path, "w" if overwrite else "x", named=path.name.endswith(_LAST_OF_A_COMMIT))


class LastingWriter(BufferedWriter):
    """A file whose content has reached the disk when it is closed; its name as well with `named`."""

    def __init__(self, path: Path, mode: str, *, named: bool) -> None:
        super().__init__(FileIO(path, mode))
        self._folder = path.parent
        self._named = named

    def close(self) -> None:
        if self.closed:
            return
        try:
            self.flush()
            os.fsync(self.fileno())
        finally:
            super().close()  # also if the disk is full
        if self._named:
            sync_folder(self._folder)


def _path(location: str) -> Path:
    path = local_path(location)
    if path is None:
        raise ValueError(f"{location} is not on a local disk")
    return Path(path)
