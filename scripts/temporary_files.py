"""A folder in memory for the temporary files of a run, and of all programs that it starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IN_MEMORY = Path("/dev/shm")
OF_A_RUN = "lithify-checks-"
"""What the name of its folder there begins with; its process follows."""
ROOM_BYTES = 12 << 30
"""A run keeps up to 3 GB of temporary files, and its JVMs need as much memory again."""


@contextmanager
def temporary_files_in_memory() -> Iterator[None]:
    """For all programs that start meanwhile, unless TMPDIR names another place. Those of runs that were killed go.

    A sixteenth of a run is work of the disk. Containers may mount it noexec: tests start programs that they write.
    """
    for left in IN_MEMORY.glob(f"{OF_A_RUN}*"):
        process = left.name.removeprefix(OF_A_RUN)  # that of a former container may have had the number of this one
        if process == str(os.getpid()) or not Path("/proc", process).exists():
            shutil.rmtree(left, ignore_errors=True)
    if "TMPDIR" in os.environ or not _takes_temporary_files():
        yield
        return
    folder = IN_MEMORY / f"{OF_A_RUN}{os.getpid()}"
    folder.mkdir()
    folder.chmod(0o1777)  # as it is for all: servers and tests have other users
    os.environ["TMPDIR"] = str(folder)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _takes_temporary_files() -> bool:
    if not IN_MEMORY.is_dir() or os.statvfs(IN_MEMORY).f_flag & os.ST_NOEXEC:
        return False
    return shutil.disk_usage(IN_MEMORY).free >= ROOM_BYTES
