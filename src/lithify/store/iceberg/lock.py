"""Turns of committers: for progress only, never for safety (that is the swap's).

Optimistic commits starve the slow: a round among tight appenders never got through without turns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from lithify.columnar.access import local_path
from lithify.model.names import TopicName
from lithify.store.iceberg.layout import lock_file

MAX_WAIT_S = 10.0
POLL_S = 0.005


@contextmanager
def turn_lock(root: str | None, name: TopicName) -> Iterator[None]:
    """Waits for its turn in a local warehouse, at most `MAX_WAIT_S`; then it goes on without."""
    folder = None if root is None else local_path(root)
    if folder is None:
        yield
        return
    path = Path(lock_file(folder, name))
    lock = FileLock(path, timeout=MAX_WAIT_S, poll_interval=POLL_S)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (Timeout, OSError):
        yield  # a holder that hangs, or a file system without locks: the swap decides
        return
    try:
        yield
    finally:
        lock.release()
