"""A file of batches, frame by frame: where each begins and ends, before anything in it is read.

    offset (8)   length (4)   ····· length bytes ·····   offset   length   ·····       ╳ the file ends within a frame
                              magic is the 5th of them                                 ╰─ torn, as by a crash

A frame is a batch of version 2, or one message of version 0 or 1, which may hold others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO, Final, NamedTuple
from zlib import crc32

from lithify.kafka_log.batches.header import HEADER_BYTES, LENGTH_END

_HEAD: Final = struct.Struct(">qi")
_MAGIC_AT: Final = 16
_LEAST_BYTES: Final = {0: 26, 1: 34, 2: HEADER_BYTES}
"""Of a frame, by its magic: all before keys, values and records."""
LARGEST_FRAME_BYTES: Final = 256 * 2**20
"""It is in memory at once: 250 times what a broker takes by default (`message.max.bytes`)."""

MOST_RECORDS: Final = 1_000_000
"""Of a batch, and as many headers: in memory they have up to 500 bytes each, and on the disk almost none."""


class BatchError(Exception):
    """Bytes that are not a batch, or not a whole one; callers know the file, and say so."""

    def __init__(self, what: str, position: int, *, is_torn: bool = False) -> None:
        super().__init__(f"at byte {position}: {what}")
        self.what, self.position, self.is_torn = what, position, is_torn

    def __reduce__(self) -> tuple[Any, ...]:
        """For tasks, which send it to the driver."""
        return partial(BatchError, is_torn=self.is_torn), (self.what, self.position)


class Frame(NamedTuple):
    """One of a file, at `position`; `data` are all its bytes."""

    position: int
    data: bytes

    @property
    def offset(self) -> int:
        """The first offset of a batch; the last one of a message that holds others."""
        return int.from_bytes(self.data[:8], signed=True)

    @property
    def magic(self) -> int:
        return self.data[_MAGIC_AT]

    @property
    def end(self) -> int:
        """The position after it."""
        return self.position + len(self.data)

    def error(self, what: str) -> BatchError:
        return BatchError(what, self.position)


class WholePart(NamedTuple):
    """The part of a file, from its first byte to `end`, in which frames follow one another.

    `heads` is a checksum of all of them, by their first bytes: in these are their own checksums.
    """

    end: int = 0
    heads: int = 0

    def with_next(self, frame: Frame) -> WholePart:
        return WholePart(frame.end, crc32(frame.data[:HEADER_BYTES], self.heads))


def frames_in(file: BinaryIO, whole: WholePart) -> Iterator[Frame]:
    """The frames of a part that was read before. Raises `BatchError`, after the last one, if they are others now."""
    found = WholePart()
    for frame in frames_of(file, end=whole.end):
        found = found.with_next(frame)
        yield frame
    if found != whole:
        raise BatchError("its batches are not those that it had when it was scanned", found.end)


def frames_of(file: BinaryIO, position: int = 0, end: int | None = None) -> Iterator[Frame]:
    """All frames from a position on, to the end of the file, or to that position.

    Raises `BatchError` for what is not a frame, after all frames before it: a torn one if the file ends within it.
    """
    file.seek(position)
    while (end is None or position < end) and (head := file.read(_MAGIC_AT + 1)):
        size = _size(head, position)
        frame = head + file.read(size - len(head))
        if len(frame) < size:
            raise _torn(position)
        yield Frame(position, frame)
        position += len(frame)


def _size(head: bytes, position: int) -> int:
    """The bytes of a frame. Raises `BatchError`."""
    if len(head) <= _MAGIC_AT:
        raise _torn(position)
    _, length = _HEAD.unpack_from(head)
    magic, size = head[_MAGIC_AT], LENGTH_END + length
    if magic not in _LEAST_BYTES:
        raise BatchError(f"a batch of the unknown version {magic}", position)
    if size < _LEAST_BYTES[magic]:
        raise BatchError(f"a batch of version {magic} cannot have {length} bytes", position)
    if size > LARGEST_FRAME_BYTES:
        raise BatchError(f"a batch of {size} bytes, but Lithify reads at most {LARGEST_FRAME_BYTES}", position)
    return int(size)


def _torn(position: int) -> BatchError:
    return BatchError("the file ends within a batch", position, is_torn=True)
