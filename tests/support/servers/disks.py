"""Warehouses in real trouble: read-only for this user, full, or not allowed to grow."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534


@contextmanager
def an_open_folder() -> Iterator[Path]:
    """A folder that any user may look into; pytest's own are for their owner alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Revokes the right to write below `folder`; from root too, by running as the user `nobody` meanwhile."""
    paths = [folder, *folder.rglob("*")]
    modes = [stat.S_IMODE(path.stat().st_mode) for path in paths]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)
        for path, mode in zip(paths, modes, strict=True):
            path.chmod(mode)


_SYSTEM = f"{os.defpath}{os.pathsep}/usr/sbin{os.pathsep}/sbin"


@contextmanager
def small_disk(folder: Path, size_bytes: int, *options: str) -> Iterator[Path]:
    """A file system of its own with that much room, mounted with these options. Skips where none may be mounted."""
    mount, umount = (shutil.which(tool, path=_SYSTEM) for tool in ("mount", "umount"))
    if mount is None or umount is None:
        pytest.skip("there is no mount")
    folder.mkdir()
    how = ",".join((f"size={size_bytes}", *options))
    mounting = subprocess.run([mount, "-t", "tmpfs", "-o", how, "tmpfs", folder], capture_output=True, check=False)
    if mounting.returncode:
        pytest.skip(f"no file system can be mounted here: {mounting.stderr.decode()}")
    try:
        yield folder
    finally:
        subprocess.run([umount, "-l", str(folder)], check=True)


@contextmanager
def no_file_larger_than(size_bytes: int) -> Iterator[None]:
    """Writes beyond that size fail for this process, as they do under a quota or `ulimit -f`."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def filled(disk: Path, blocks: int) -> Iterator[None]:
    """Leaves so many blocks free."""
    filler, free = disk / "filler", os.statvfs(disk)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, (free.f_bavail - blocks) * free.f_frsize)
    try:
        yield
    finally:
        filler.unlink()
