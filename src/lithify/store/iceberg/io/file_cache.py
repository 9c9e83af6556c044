"""Small files that are written once, kept in memory after they were read or written.

    00017-<uuid>.metadata.json, snap-<id>-<uuid>.avro, <uuid>-m0.avro    no other file ever has these names
    failures.json, rates.json                                            overwritten: never cached

A commit needs the metadata and manifests that the load before it, or the last commit, has
read. Over an object store each of them would be two requests each time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Generic, TypeVar

from cachetools import LRUCache

MEMORY_BYTES = 64 * 2**20
FILE_BYTES = 4 * 2**20
"""Larger files are read each time."""

_WRITTEN_ONCE = (".metadata.json", ".avro")


K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The entries used last, up to `most` of them or of their sizes; safe to use from several threads.

    An entry that is larger than that is not kept.
    """

    def __init__(self, most: int, size_of: Callable[[V], int] | None = None) -> None:
        self._entries: LRUCache[K, V] = LRUCache(most, getsizeof=size_of)
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            return self._entries.get(key)

    def put(self, key: K, value: V) -> None:
        with self._lock, suppress(ValueError):  # of one that is too large
            self._entries[key] = value

    def drop(self, key: K) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()


class FileCache(Recent[str, bytes]):
    """The contents of such files by path, up to `MEMORY_BYTES`; without an entry the file itself is opened."""

    def __init__(self) -> None:
        super().__init__(MEMORY_BYTES, len)

    @staticmethod
    def takes(path: str) -> bool:
        """Whether it is a file that never changes."""
        return path.endswith(_WRITTEN_ONCE)

    def put(self, key: str, value: bytes) -> None:
        if len(value) <= FILE_BYTES:
            super().put(key, value)


FILE_CACHE = FileCache()
"""Of this process."""
