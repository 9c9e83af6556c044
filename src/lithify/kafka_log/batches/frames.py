"""A file of batches, frame by frame: where each begins and ends, before anything in it is read.

    offset (8)   length (4)   ····· length bytes ·····   offset   length   ·····       ╳ the file ends within a frame
                              magic is the 5th of them                                 ╰─ torn, as by a crash

A frame is a batch of version 2, or one message of version 0 or 1, which may hold others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, BinaryIO, Final, NamedTuple
from zlib import crc32

from lithify.kafka_log.batches.header import HEADER_BYTES, LENGTH_END, MAGIC

_LENGTH: Final = struct.Struct(">i")
_MAGIC_AT: Final = 16
_LEAST_BYTES: Final = {0: 26, 1: 34, 2: HEADER_BYTES}
"""Of a frame, by its magic: all before keys, values and records."""
LARGEST_FRAME_BYTES: Final = 256 * 2**20
"""It is in memory at once: 250 times what a broker takes by default (`message.max.bytes`)."""

PIECE_BYTES: Final = 2**20

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


class Piece(NamedTuple):
    """Frames that follow one another, from `position` of a file on.

    `starts` are where they begin in `data`, and where the last one ends.
    """

    position: int
    data: bytes
    starts: list[int]
    are_batches: bool
    """Whether all are of version 2."""

    def frames(self, first: int = 0, last: int | None = None) -> Iterator[Frame]:
        """All, or some by their numbers."""
        for start, end in pairwise(self.starts[first : None if last is None else last + 1]):
            yield Frame(self.position + start, self.data[start:end])


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
    for piece in pieces_of(file, position, end):
        yield from piece.frames()


def pieces_of(file: BinaryIO, position: int = 0, end: int | None = None) -> Iterator[Piece]:
    """As `frames_of`, with many small ones at once. A frame that is larger than a piece is one by itself."""
    file.seek(position)
    rest, wanted = b"", PIECE_BYTES
    while end is None or position < end:
        data = rest + file.read(wanted - len(rest))
        ends = len(data) < wanted
        piece, wanted, error = _piece(position, data, end)
        if len(piece.starts) > 1:
            yield piece
        if error is not None:
            raise error
        position, rest = position + piece.starts[-1], data[piece.starts[-1] :]
        if ends:
            if rest and (end is None or position < end):
                raise _torn(position)
            return


def _piece(position: int, data: bytes, end: int | None) -> tuple[Piece, int, BatchError | None]:
    """The frames that begin in `data` and before `end`, how much to have next, and what is wrong after them."""
    starts, at, are_batches = [0], 0, True
    while at + _MAGIC_AT < len(data) and (end is None or position + at < end):
        length, magic = _LENGTH.unpack_from(data, at + LENGTH_END - _LENGTH.size)[0], data[at + _MAGIC_AT]
        size = LENGTH_END + length
        if magic != MAGIC or not HEADER_BYTES <= size <= LARGEST_FRAME_BYTES:
            are_batches = False
            try:
                _check_size(magic, size, position + at)
            except BatchError as error:
                return Piece(position, data, starts, are_batches), 0, error
        if at + size > len(data):
            return Piece(position, data, starts, are_batches), max(size, PIECE_BYTES), None
        at += size
        starts.append(at)
    return Piece(position, data, starts, are_batches), PIECE_BYTES, None


def _check_size(magic: int, size: int, position: int) -> None:
    if magic not in _LEAST_BYTES:
        raise BatchError(f"a batch of the unknown version {magic}", position)
    if size < _LEAST_BYTES[magic]:
        raise BatchError(f"a batch of version {magic} cannot have {size - LENGTH_END} bytes", position)
    if size > LARGEST_FRAME_BYTES:
        raise BatchError(f"a batch of {size} bytes, but Lithify reads at most {LARGEST_FRAME_BYTES}", position)


def _torn(position: int) -> BatchError:
    return BatchError("the file ends within a batch", position, is_torn=True)
