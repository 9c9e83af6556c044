"""A log directory that another process has, as a broker that runs."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    locks = (
        f"import fcntl, sys; lock = open({str(directory / '.lock')!r}, 'wb'); "
        f"fcntl.lockf(lock, {fcntl.LOCK_EX}); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", locks], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "locked\n"
        yield
        assert other.stdin is not None
        other.stdin.close()
