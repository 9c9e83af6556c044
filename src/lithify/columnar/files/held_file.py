"""A file of an object store that is read by column chunk, one request per chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class HeldFile:
    """A readable file that buffers the byte ranges last passed to `hold`, compressed as stored."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._held: list[tuple[int, bytes]] = []
        self._at = 0
        self._size = int(source.seek(0, 2))

    def hold(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Reads (start, size) ranges, in bytes, into the buffer, replacing its content."""
        self._held = [(start, self._read(start, size)) for start, size in ranges]

    def read_at(self, size: int, start: int) -> bytes:
        """Reads `size` bytes at `start` without moving the position, as Arrow's `NativeFile.read_at` does."""
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
