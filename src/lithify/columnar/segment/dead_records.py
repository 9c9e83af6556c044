"""The dead records of a segment, as a compressed bitmap of positions.

    records of a segment    0   1   2   3   4   5        position: the row number in the file, without masked rows
    clean segment           .   x   .   .   .   .        lists its dead records, which are few
    dirty segment           x   x   x   .   x   x        lists its live records, which are few

Positions are dense even where offsets have gaps, so a bitmap remains small and the offsets of most segments
need not be read. Iceberg's position deletes identify records in the same way. Only this module defines
which of the two a bitmap lists.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from lithify.model.segment import Segment

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_FLUSH_COUNT = 1 << 21


def ordinal_starts(segments: Iterable[Segment], first: int = 0) -> Integers:
    """The ordinal of each segment's first record, counted over all segments from `first`, then the end.

    int64, one longer than `segments`, ascending.
    """
    return np.cumsum([first, *(segment.records for segment in segments)])


@dataclass(frozen=True, slots=True)
class DeadPositions:
    """The dead positions of one segment that a part of its keys yields; by default none."""

    _listed: BitMap = field(default_factory=BitMap)
    _all_but: bool = False
    """Whether `_listed` are the live positions."""

    @staticmethod
    def of(positions: Iterable[int]) -> DeadPositions:
        return DeadPositions(BitMap(positions))

    @staticmethod
    def all_but(positions: Iterable[int]) -> DeadPositions:
        return DeadPositions(BitMap(positions), True)

    @staticmethod
    def of_bytes(data: bytes) -> DeadPositions:
        return DeadPositions(BitMap.deserialize(data[1:]), bool(data[0]))

    def to_bytes(self) -> bytes:
        return bytes([self._all_but]) + self._listed.serialize()

    def with_part(self, other: DeadPositions) -> DeadPositions:
        """Merged with those from another part of the keys of the same segment. Raises `ValueError` on mixed kinds."""
        if self._all_but != other._all_but:
            raise ValueError("the parts of a segment do not list the same kind of records")
        return DeadPositions(self._listed | other._listed, self._all_but)

    @property
    def change(self) -> int:
        """Change in the number of dead records by the key pass; below zero for a dirty segment, all dead before."""
        return -len(self._listed) if self._all_but else len(self._listed)

    def has(self, position: int) -> bool:
        """Whether the record at this position is dead, where positions are too sparse for `flags`."""
        return (position in self._listed) is not self._all_but

    def flags(self, start: int, end: int) -> Flags:
        """For each position in [start, end), whether its record is dead: bool, of length end - start."""
        listed = (self._listed & BitMap(range(start, end))).to_array()
        flags = np.full(end - start, self._all_but)
        flags[np.frombuffer(listed, dtype=np.uint32).astype(np.int64) - start] = not self._all_but
        return flags


class DeadRecords:
    """Collects the dead records of one log's segments by ordinal; `starts` comes from `ordinal_starts`.

    A record of a clean segment is live until it is added, one of a dirty segment dead until it is spared.
    Each ordinal is passed at most once, in any order.
    """

    def __init__(self, starts: Integers) -> None:
        self._starts = starts
        self._segments: dict[int, DeadPositions] = {}
        self._pending: dict[bool, list[Integers]] = {False: [], True: []}
        self._pending_count = 0

    def add(self, ordinals: Integers) -> None:
        """Marks records of clean segments as dead; `ordinals` is int64, unsorted."""
        self._list(ordinals, all_but=False)

    def spare(self, ordinals: Integers) -> None:
        """Marks records of dirty segments as live; `ordinals` is int64, unsorted."""
        self._list(ordinals, all_but=True)

    def update(self, other: DeadRecords) -> None:
        """Merges what another instance collected over the same segments."""
        for index, dead in other.by_segment().items():
            self.add_part(index, dead)

    def add_part(self, index: int, dead: DeadPositions) -> None:
        """Merges what was collected for the segment at `index`."""
        known = self._segments.get(index)
        self._segments[index] = dead if known is None else known.with_part(dead)

    def by_segment(self) -> Mapping[int, DeadPositions]:
        """The dead positions by index of the segment, without segments for which nothing was collected."""
        self._flush()
        return self._segments

    def _list(self, ordinals: Integers, *, all_but: bool) -> None:
        self._pending[all_but].append(ordinals)
        self._pending_count += len(ordinals)
        if self._pending_count >= _FLUSH_COUNT:
            self._flush()

    def _flush(self) -> None:
        for all_but, pending in self._pending.items():
            ordinals = np.concatenate([_NONE, *pending])
            pending.clear()
            ordinals = _ascending(ordinals)
            cuts = np.searchsorted(ordinals, self._starts)
            for index in np.flatnonzero(np.diff(cuts)):
                positions = ordinals[cuts[index] : cuts[index + 1]] - self._starts[index]
                self.add_part(int(index), DeadPositions(bitmap_of(positions), all_but))
        self._pending_count = 0


_NONE = np.zeros(0, np.int64)

_MOST_GAPS = 16
"""If at least one number in this many is there, they are noted by number, in a tenth of the time of a sort."""


def _ascending(numbers: Integers) -> Integers:
    """The same numbers, distinct and not negative, in order."""
    if not (numbers[1:] < numbers[:-1]).any():
        return numbers
    first = int(numbers.min())
    span = int(numbers.max()) - first + 1
    if span > _MOST_GAPS * len(numbers):
        return np.sort(numbers)
    there = np.zeros(span, np.bool_)
    there[numbers - first] = True
    return np.flatnonzero(there) + first


def bitmap_of(positions: Integers) -> BitMap:
    """A bitmap of positions below 2**32."""
    unsigned = array("I")  # the only sequence type that a bitmap reads without creating an int per element
    unsigned.frombytes(positions.astype(np.uint32).tobytes())
    return BitMap(unsigned)
