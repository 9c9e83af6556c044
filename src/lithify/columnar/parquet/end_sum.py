"""The checksum of the end of a file: of what lies behind its row groups, for which Parquet has none.

    row groups | index of keys | bounds and lists of pages | CRC-32 | footer
               └──────────────── summed up ────────────────┘        └─ and this ─┘

The four bytes are where no reader of Parquet looks, since the footer points to nothing there. Files without a list of
their pages have none of this: what is wrong with their footer is found by their rows (C8, C65).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from lithify.columnar.parquet.footer import END_BYTES, MAGIC, Footer, UnsoundFileError

_SUM_BYTES = 4


class SummedEnd:
    """A new file, for Parquet's writer: passes on to `sink` what is written, and puts the checksum into its end."""

    closed = False

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._begun = False
        self._sum = 0
        self._held: bytearray | None = None

    def write(self, content: bytes) -> int:
        """Writes `content`, or holds it until `finish`."""
        if self._held is not None:
            self._held += content
            return len(content)
        if self._begun:
            self._sum = zlib.crc32(content, self._sum)
        self._sink.write(content)
        return len(content)

    def begin(self) -> None:
        """All row groups are written."""
        self._begun = True

    def hold(self) -> None:
        """What is written next are the lists of pages and the footer."""
        self._held = bytearray()

    def finish(self) -> int:
        """Writes what was held. Returns the size of the checksum in it."""
        held = bytes(self._held or b"")
        footer = len(held) - END_BYTES - int.from_bytes(held[-END_BYTES : -len(MAGIC)], "little")
        end_sum = zlib.crc32(held, self._sum)
        self._sink.write(b"".join([held[:footer], end_sum.to_bytes(_SUM_BYTES, "little"), held[footer:]]))
        self._held = None
        return _SUM_BYTES

    def flush(self) -> None:
        """Parquet's writer asks for it; files are made lasting when they are whole."""

    def close(self) -> None:
        self.closed = True
        self._sink.close()


class EndSum:
    """Checks the end of the file of a footer while its bytes pass."""

    def __init__(self, footer: Footer) -> None:
        chunks = [chunk for group in footer.chunks for chunk in group.values()]
        self.is_there = any(chunk.offset_index is not None for chunk in chunks)
        self.start = max((chunk.end for chunk in chunks), default=0)
        self._at = footer.start - _SUM_BYTES

    def pass_on(self, pieces: Iterable[bytes], at: int = 0) -> Iterator[bytes]:
        """The same pieces, of which the first is that from byte `at` on; raises `UnsoundFileError` behind the last."""
        end_sum, stored = 0, b""
        for piece in pieces:
            if self.is_there:
                before, behind = (max(0, place - at) for place in (self._at, self._at + _SUM_BYTES))
                end_sum = zlib.crc32(piece[max(0, self.start - at) : before], end_sum)
                end_sum = zlib.crc32(piece[behind:], end_sum)
                stored += piece[before:behind]
                at += len(piece)
            yield piece
        if self.is_there and (self._at < self.start or end_sum.to_bytes(_SUM_BYTES, "little") != stored):
            raise UnsoundFileError("the part after its row groups is not what was written: a checksum differs")
