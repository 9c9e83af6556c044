"""Rows of the key pass by part of their hashes, so that the keys of a part fit into the processor's cache.

    arriving   [ rows ][ rows ] ─► sorted by part ─► [ 0 0 0 1 1 2 .. ][ 0 0 1 1 1 2 .. ]     with where parts start
    part 1     what is between their starts, joined ─► compared as a whole

To compare millions of keys at once touches memory at random for each of them, beside the caches, and the more so where
other programs use these as well. So rows are sorted by six bits of the hash as they come, by counting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow.compute as pc

from lithify.columnar.key_hash import HALF_BITS
from lithify.columnar.keypass.held_rows import Rows
from lithify.columnar.keypass.key_source import MemoryExceededError
from lithify.columnar.segment.dead_records import Integers
from lithify.waits.parallel import parallel

Result = TypeVar("Result")

PARTS, GROUPS = 64, 8
"""Each part costs some hundred array operations, so few rows are better in few parts. Parts are stored in groups, so
that memory is free again group by group."""

SORTED_ROWS, SORTED_SHARE = 1 << 18, 1 / 16
"""Rows sorted by part at a time, or as many as take this share of the memory. Fewer in all are one part."""

SPARE_BYTES = 12
"""Memory for each row that taking the parts needs besides the rows."""

PART_BYTES = 60
"""Memory that joining and comparing a part takes for each of its rows, besides them: a key with half of all records
takes half of all memory."""

TELLING_ROWS = 1 << 12
"""Once this many rows of some parts are left, it is known how much the others will leave, as hashes share keys out."""

_PART_SHIFT = np.uint32(HALF_BITS - (PARTS - 1).bit_length())
_IN_GROUP = PARTS // GROUPS


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Rows sorted by part, stable, in groups that are removed one after the other, and where each part starts."""

    groups: list[Rows]
    starts: Integers

    @staticmethod
    def of(rows: Rows) -> _Sorted:
        parts = (rows.halves >> _PART_SHIFT).astype(np.uint8)
        starts = np.concatenate([[0], np.cumsum(np.bincount(parts, minlength=PARTS))])
        order = pc.array_sort_indices(parts).to_numpy()  # by counting: NumPy's sort of bytes takes five times as long
        in_groups = np.split(order, starts[_IN_GROUP:-1:_IN_GROUP])
        return _Sorted([rows.take(group) for group in in_groups], starts)

    def part(self, index: int) -> Rows:
        """Of the first group."""
        start, end = self.starts[index : index + 2] - self.starts[index - index % _IN_GROUP]
        return self.groups[0].slice(int(start), int(end))


class PartedRows:
    """Collects rows, of which `memory_bytes` can be held, and counts the memory that they take.

    `threads` parts are worked on at once.
    """

    def __init__(self, memory_bytes: int, threads: int = 1) -> None:
        self._threads = threads
        self._most_waiting_bytes = memory_bytes * SORTED_SHARE
        self._waiting: list[Rows] = []
        self._sorted: list[_Sorted] = []
        self._reduced: list[Rows] = []
        self._in_parts = np.zeros(PARTS, np.int64)
        self._waiting_bytes = self._waiting_rows = self._held_bytes = self._key_bytes = self.rows = 0

    def add(self, rows: Rows) -> None:
        self._waiting.append(rows)
        self._waiting_bytes += rows.held_bytes
        self._waiting_rows += rows.count
        self._held_bytes += rows.held_bytes
        self._key_bytes += rows.keys.nbytes
        self.rows += rows.count
        if self._waiting_rows >= SORTED_ROWS or self._waiting_bytes > self._most_waiting_bytes:
            self._sort()

    @property
    def needed_bytes(self) -> int:
        """Bytes for the rows, and for taking the parts."""
        largest = PART_BYTES * int(self._in_parts.max()) * self._threads
        return _needed_bytes(self._held_bytes, self._key_bytes, self.rows) + largest

    def each(self, function: Callable[[Rows], Result]) -> Iterator[Result]:
        """Removes all rows, and yields what `function` makes of each part; see `take`."""
        return parallel(function, self.take(), self._threads, ahead=2)

    def take(self) -> Iterator[Rows]:
        """Removes and yields all rows, all of a key together in one part, each part in log order."""
        waiting, in_order, reduced = self._waiting, self._sorted, self._reduced
        if waiting and (in_order or reduced):
            self._sort()
        self._clear()
        if not in_order and not reduced:
            yield Rows.joined(waiting).sorted()
            return
        reduced.reverse()
        for index in range(PARTS):
            before = [reduced.pop()] if reduced else []
            yield Rows.joined([*before, *(rows.part(index) for rows in in_order)]).sorted()
            if index % _IN_GROUP == _IN_GROUP - 1:
                for rows in in_order:
                    del rows.groups[0]

    def reduce(self, only: Callable[[Rows], Rows], most_bytes: float) -> None:
        """Keeps what `only` leaves of each part. Raises `MemoryExceededError` if that is more than `most_bytes`."""
        reduced: list[Rows] = []
        left, left_bytes, key_bytes = 0, 0, 0
        parts = PARTS if self._sorted or self._reduced else 1
        for rows in self.each(only):
            reduced.append(rows)
            left += rows.count
            left_bytes += rows.held_bytes
            key_bytes += rows.keys.nbytes
            share = len(reduced) / parts if left > TELLING_ROWS else 1
            if left > 1 and _needed_bytes(left_bytes, key_bytes, left) > most_bytes * share:
                raise MemoryExceededError
        if parts == 1:
            self.add(reduced[0])
        else:
            self._reduced, self.rows = reduced, left
            self._held_bytes, self._key_bytes = left_bytes, key_bytes

    def _clear(self) -> None:
        self._waiting, self._sorted, self._reduced = [], [], []
        self._in_parts[:] = 0
        self._waiting_bytes = self._waiting_rows = self._held_bytes = self._key_bytes = self.rows = 0

    def _sort(self) -> None:
        waiting, self._waiting, self._waiting_bytes, self._waiting_rows = self._waiting, [], 0, 0
        rows = _Sorted.of(Rows.joined(waiting))
        self._in_parts += np.diff(rows.starts)
        self._sorted.append(rows)


def _needed_bytes(held_bytes: int, key_bytes: int, rows: int) -> int:
    """At most half is keys, since Arrow puts no more than 2 GiB of them together."""
    return max(held_bytes + SPARE_BYTES * rows, 2 * key_bytes)
