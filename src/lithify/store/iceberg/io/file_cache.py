"""Small files that are written once, kept in memory after they were read or written.

    00017-<uuid>.metadata.json, snap-<id>-<uuid>.avro, <uuid>-m0.avro    no other file ever has these names
    failures.json, rates.json                                            overwritten: never cached

A commit needs the metadata and manifests that the load before it, or the last commit, has
read. Over an object store each of them would be two requests each time.
"""

from __future__ import annotations

from threading import Lock

from cachetools import LRUCache

MEMORY_BYTES = 64 * 2**20
FILE_BYTES = 4 * 2**20
"""Larger files are read each time."""

_WRITTEN_ONCE = (".metadata.json", ".avro")


class FileCache:
    """The latest of them by path, up to `MEMORY_BYTES`; safe to use from several threads."""

    def __init__(self) -> None:
        self._files: LRUCache[str, bytes] = LRUCache(MEMORY_BYTES, getsizeof=len)
        self._lock = Lock()

    @staticmethod
    def takes(path: str) -> bool:
        """Whether it is a file that never changes."""
        return path.endswith(_WRITTEN_ONCE)

    def get(self, path: str) -> bytes | None:
        with self._lock:
            content: bytes | None = self._files.get(path)
            return content

    def put(self, path: str, content: bytes) -> None:
        if len(content) <= FILE_BYTES:
            with self._lock:
                self._files[path] = content

    def drop(self, path: str) -> None:
        """It is deleted."""
        with self._lock:
            self._files.pop(path, None)

    def clear(self) -> None:
        """Drops all of them, so that the next read of each opens the file itself."""
        with self._lock:
            self._files.clear()


FILE_CACHE = FileCache()
"""Of this process."""
