"""A file of an object store, read a column chunk at a time: each in one request, however often it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class HeldFile:
    """An open file to read. What `hold` was given last stays in memory, compressed as it is stored."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._held: list[tuple[int, bytes]] = []
        self._at = 0
        self._size = int(source.seek(0, 2))

    def hold(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Reads (start, size) ranges, in the place of those before."""
        self._held = [(start, self._read(start, size)) for start, size in ranges]

    def read_at(self, size: int, start: int) -> bytes:
        """As Arrow's own files have it."""
        for at, content in self._held:
            if at <= start and start + size <= at + len(content):
                return content[start - at : start - at + size]
        return self._read(start, size)

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._size - self._at if size is None or size < 0 else size
        content = self.read_at(wanted, self._at)
        self._at += len(content)
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self._held = []
        self._source.close()

    @property
    def closed(self) -> bool:
        return bool(self._source.closed)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def _read(self, start: int, size: int) -> bytes:
        self._source.seek(start)
        return bytes(self._source.read(size))
