"""Marks: which records of a segment stay, or which go, as a compressed bitmap of their positions.

    records of a segment    0   1   2   3   4   5        position: where a record stands in its file
    dirty segment           .   x   .   .   x   .        marks say what stays (few of many)
    clean segment           .   .   .   x   .   .        marks say what goes (few again)

Positions rather than offsets: they are dense even where offsets have gaps, so a bitmap stays small
whatever producers bring, and most segments need no offset read to find their winners. Iceberg's
own deletes name records in the same way.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lithify.model.segment import Segment

Integers = npt.NDArray[np.int64]

_FLUSH_COUNT = 1 << 20


def ordinal_starts(segments: Iterable[Segment], first: int = 0) -> Integers:
    """Numbers the records of segments through: the ordinal of each one's first record, then the end."""
    return np.cumsum([first, *(segment.records for segment in segments)])


class MarkSet:
    """Collects marks of the segments of one log by ordinal; `starts` is as from `ordinal_starts`."""

    def __init__(self, starts: Integers) -> None:
        self._starts = starts
        self._bitmaps: dict[int, BitMap] = {}
        self._pending: list[Integers] = []
        self._pending_count = 0

    def add(self, ordinals: Integers) -> None:
        """Marks these records: each at most once, in any order."""
        self._pending.append(ordinals)
        self._pending_count += len(ordinals)
        if self._pending_count >= _FLUSH_COUNT:
            self._flush()

    def update(self, other: MarkSet) -> None:
        """Adds the marks of another set over the same segments."""
        for index, bitmap in other.bitmaps().items():
            self._mark(index, bitmap)

    def bitmaps(self) -> Mapping[int, BitMap]:
        """By index of the segment: the marked positions in it. Segments without marks are left out."""
        self._flush()
        return self._bitmaps

    def _flush(self) -> None:
        if not self._pending:
            return
        ordinals = np.sort(np.concatenate(self._pending))
        self._pending, self._pending_count = [], 0
        cuts = np.searchsorted(ordinals, self._starts)
        for index in np.flatnonzero(np.diff(cuts)):
            positions = ordinals[cuts[index] : cuts[index + 1]] - self._starts[index]
            self._mark(int(index), BitMap(_unsigned(positions)))

    def _mark(self, index: int, bitmap: BitMap) -> None:
        known = self._bitmaps.get(index)
        self._bitmaps[index] = bitmap if known is None else known | bitmap


def positions_between(bitmap: BitMap, start: int, end: int) -> Integers:
    """The marked positions in [start, end), ascending, counted from `start`."""
    marked = (bitmap & BitMap(range(start, end))).to_array()
    return np.frombuffer(marked, dtype=np.uint32).astype(np.int64) - start


def _unsigned(positions: Integers) -> array[int]:
    # The one kind of sequence that a bitmap takes in without making an int of each element.
    unsigned = array("I")
    unsigned.frombytes(positions.astype(np.uint32).tobytes())
    return unsigned
