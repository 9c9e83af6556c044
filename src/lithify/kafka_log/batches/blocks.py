"""Many batches at once: what one costs by itself in Python is more than the records of a small one.

piece      │ head │ records │ head │ records │ head │ records │
heads      base, epoch, checksum, attributes, last, records ···      a row for each, by NumPy
alone      batches of one record each: read as one batch, and moved to their offsets and times
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, BinaryIO, Final
from zlib import crc32

import google_crc32c
import numpy as np
import numpy.typing as npt

from lithify.kafka_log.batches.frames import BatchError, Piece, WholePart, pieces_of
from lithify.kafka_log.batches.header import CHECKED_FROM, HEADER_BYTES, attributes_of

_NAMES: Final = (
    "base", "length", "epoch", "magic", "crc", "attributes", "last",
    "first_ms", "max_ms", "producer", "producer_epoch", "sequence", "records",
)  # fmt: skip
_TYPES: Final = (">i8", ">i4", ">i4", ">i1", ">u4", ">i2", ">i4", ">i8", ">i8", ">i8", ">i2", ">i4", ">i4")
_HEAD: Final = np.dtype(list(zip(_NAMES, _TYPES, strict=True)))
_NOT_PLAIN: Final = attributes_of(0, is_transactional=True, is_control=True)
_LEAST_RECORD_BYTES: Final = 7
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PlainBatches:
    """The batches of a piece, if all are in order, and of no transaction; their checksums are not compared yet."""

    piece: Piece
    heads: npt.NDArray[Any]
    first: Numbers
    last: Numbers
    """Offsets, of each."""

    @property
    def are_whole(self) -> bool:
        """Whether all checksums are right."""
        data, starts = self.piece.data, self.piece.starts
        found = [google_crc32c.value(data[start + CHECKED_FROM : end]) for start, end in pairwise(starts)]
        return bool(found == self.heads["crc"].tolist())

    @property
    def alone(self) -> npt.NDArray[np.bool_]:
        """Which have one record that is not compressed, and nothing else, with a time of its producer."""
        starts = np.asarray(self.piece.starts)
        sizes = np.diff(starts) - HEADER_BYTES
        is_one = (self.heads["records"] == 1) & (self.heads["attributes"] == 0) & (self.heads["first_ms"] != -1)
        return np.asarray(is_one & (sizes >= _LEAST_RECORD_BYTES) & (sizes == self._stated_sizes(starts[:-1])))

    def _stated_sizes(self, starts: Numbers) -> Numbers:
        """Of the first records, with the numbers of at most three bytes that state them; -1 for others."""
        data = np.frombuffer(self.piece.data, np.uint8)
        at = np.minimum(starts + HEADER_BYTES, len(data) - 3)
        one, two, three = (data[at + n].astype(np.int64) for n in range(3))
        sizes = (one & 0x7F, two & 0x7F, three & 0x7F)
        number = [sizes[0], sizes[0] | sizes[1] << 7, sizes[0] | sizes[1] << 7 | sizes[2] << 14]
        ends = [one < 0x80, two < 0x80, three < 0x80]
        stated = np.select(ends, [(n >> 1) + length for length, n in enumerate(number, 1)], -1)
        return np.where(one & 1, -1, stated)

    def records_in(self, start: int, end: int) -> bytes:
        """The bytes of the records of some batches, by their numbers."""
        data = self.piece.data
        return b"".join(data[at + HEADER_BYTES : to] for at, to in pairwise(self.piece.starts[start : end + 1]))


def plain_batches(piece: Piece) -> PlainBatches | None:
    """None for a piece that has anything else."""
    if not piece.are_batches:
        return None
    heads = heads_of(piece)
    first = heads["base"].astype(np.int64)
    last = first + heads["last"]
    signs = (heads[name] >= 0 for name in ("base", "last", "records"))
    is_plain = heads["attributes"] & _NOT_PLAIN == 0
    if not all(each.all() for each in (is_plain, *signs, last >= first, first[1:] > last[:-1])):
        return None
    return PlainBatches(piece, heads, first, last)


def heads_of(piece: Piece) -> npt.NDArray[Any]:
    """Of batches of version 2."""
    data = piece.data
    return np.frombuffer(b"".join([data[at : at + HEADER_BYTES] for at in piece.starts[:-1]]), _HEAD)


def with_piece(whole: WholePart, piece: Piece) -> WholePart:
    """What `with_next` comes to for all its frames."""
    if piece.are_batches:
        return WholePart(piece.position + piece.starts[-1], crc32(heads_of(piece).tobytes(), whole.heads))
    for frame in piece.frames():
        whole = whole.with_next(frame)
    return whole


def pieces_in(file: BinaryIO, whole: WholePart) -> Iterator[Piece]:
    """The pieces of a part that was read before. Raises `BatchError`, after the last one, if they are others now."""
    found = WholePart()
    for piece in pieces_of(file, end=whole.end):
        found = with_piece(found, piece)
        yield piece
    if found != whole:
        raise BatchError("its batches are not those that it had when it was scanned", found.end)
