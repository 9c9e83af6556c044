"""Which records of a segment are dead, as a compressed bitmap of positions.

    records of a segment    0   1   2   3   4   5        position: where a record stands in its file
    clean segment           .   x   .   .   .   .        lives but for what is found to lose: few
    dirty segment           x   x   x   .   x   x        is dead but for what is found to survive: few again

Positions rather than offsets: they are dense even where offsets have gaps, so a bitmap stays small
whatever producers bring, and most segments need no offset read to find their winners. Iceberg's
own deletes name records in the same way. Which of the two a bitmap lists is known here only.
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

_FLUSH_COUNT = 1 << 20


def ordinal_starts(segments: Iterable[Segment], first: int = 0) -> Integers:
    """Numbers the records of segments through: the ordinal of each one's first record, then the end."""
    return np.cumsum([first, *(segment.records for segment in segments)])


@dataclass(frozen=True, slots=True)
class DeadPositions:
    """The dead records of one segment, as far as a part of its keys tells; none if nothing else is said."""

    _listed: BitMap = field(default_factory=BitMap)
    _all_but: bool = False
    """Whether `_listed` are those that live."""

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
        """Together with what another part of the keys tells of the same segment."""
        if self._all_but != other._all_but:
            raise ValueError("the parts of a segment do not list the same")
        return DeadPositions(self._listed | other._listed, self._all_but)

    @property
    def change(self) -> int:
        """How many more records are dead than were before the key pass; fewer, below zero, of a dirty segment."""
        return -len(self._listed) if self._all_but else len(self._listed)

    def flags(self, start: int, end: int) -> Flags:
        """By position in [start, end): whether the record there is dead."""
        listed = (self._listed & BitMap(range(start, end))).to_array()
        flags = np.full(end - start, self._all_but)
        flags[np.frombuffer(listed, dtype=np.uint32).astype(np.int64) - start] = not self._all_but
        return flags


class DeadRecords:
    """Collects the dead of one log's segments by ordinal; `starts` is as from `ordinal_starts`.

    Every record of a clean segment lives until it is added, every one of a dirty segment is dead until
    it is spared: each at most once, in any order.
    """

    def __init__(self, starts: Integers) -> None:
        self._starts = starts
        self._segments: dict[int, DeadPositions] = {}
        self._pending: dict[bool, list[Integers]] = {False: [], True: []}
        self._pending_count = 0

    def add(self, ordinals: Integers) -> None:
        """These of clean segments are dead."""
        self._list(ordinals, all_but=False)

    def spare(self, ordinals: Integers) -> None:
        """These of dirty segments live."""
        self._list(ordinals, all_but=True)

    def update(self, other: DeadRecords) -> None:
        """Adds what was collected over the same segments."""
        for index, dead in other.by_segment().items():
            self.add_part(index, dead)

    def add_part(self, index: int, dead: DeadPositions) -> None:
        """Adds what was collected of one segment."""
        known = self._segments.get(index)
        self._segments[index] = dead if known is None else known.with_part(dead)

    def by_segment(self) -> Mapping[int, DeadPositions]:
        """By index of the segment; those of which nothing was collected are left out."""
        self._flush()
        return self._segments

    def _list(self, ordinals: Integers, *, all_but: bool) -> None:
        self._pending[all_but].append(ordinals)
        self._pending_count += len(ordinals)
        if self._pending_count >= _FLUSH_COUNT:
            self._flush()

    def _flush(self) -> None:
        for all_but, pending in self._pending.items():
            ordinals = np.sort(np.concatenate([_NONE, *pending]))
            pending.clear()
            cuts = np.searchsorted(ordinals, self._starts)
            for index in np.flatnonzero(np.diff(cuts)):
                positions = ordinals[cuts[index] : cuts[index + 1]] - self._starts[index]
                self.add_part(int(index), DeadPositions(BitMap(_unsigned(positions)), all_but))
        self._pending_count = 0


_NONE = np.zeros(0, np.int64)


def _unsigned(positions: Integers) -> array[int]:
    # The one kind of sequence that a bitmap takes in without making an int of each element.
    unsigned = array("I")
    unsigned.frombytes(positions.astype(np.uint32).tobytes())
    return unsigned
