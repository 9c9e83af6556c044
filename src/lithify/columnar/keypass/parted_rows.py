"""Rows of the key pass by part of their hashes, so that the keys of a part fit into the processor's cache.

    arriving   [ rows ][ rows ] ─► sorted by part ─► [ 0 0 0 1 1 2 .. ][ 0 0 1 1 1 2 .. ]     with where parts start
    part 1     what is between their starts, joined ─► compared as a whole

To compare millions of keys at once touches memory at random for each of them, beside the caches, and the more so where
other programs use these as well. So rows are sorted by six bits of the hash as they come, by counting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.key_hash import PARTS, HashRange, parts_of
from lithify.columnar.keypass.held_rows import Rows
from lithify.columnar.segment.dead_records import Integers
from lithify.waits.parallel import parallel

GROUPS = 8
"""Each part costs some hundred array operations, so few rows are better in few parts. Parts are stored in groups, so
that memory is free again group by group."""

SORTED_ROWS, SORTED_SHARE = 1 << 18, 1 / 16
"""Rows sorted by part at a time, or as many as take this share of the memory. Fewer in all are one part."""

SPARE = 0.45
"""Memory that taking the parts needs besides the rows, in theirs."""

COPIES_JOINED, COPIES = 2, 1.5
"""Keys are counted at least so many times if all are joined in the end, and if not. Then `MOST_MEMORY_BYTES` hold no
more than the 2 GiB of keys that Arrow joins."""

PART_BYTES = 80
"""Memory that comparing a part takes for each of its rows, besides a copy of them."""

BLOCK_ROWS, HOT = 1 << 18, 2
"""A part with more rows than this, and than two parts have on average, is reduced in blocks first. It has a key with
many rows, which are never copied as a whole."""

_IN_GROUP = PARTS // GROUPS
_NONE: Integers = np.array([], np.int64)


@dataclass(frozen=True, slots=True)
class _Sorted:
    """Rows sorted by part, stable, in groups that are removed one after the other, and where each part starts."""

    groups: list[Rows]
    starts: Integers

    @staticmethod
    def of(rows: Rows) -> _Sorted:
        parts = parts_of(rows.halves)
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

    `only` says which rows of a part are kept when it is reduced: what it keeps of rows that were reduced before must be
    what it keeps of all. `threads` parts are worked on at once. With `joined` all that is taken is held together.
    """

    def __init__(
        self, memory_bytes: int, only: Callable[[Rows], Rows], threads: int = 1, *, joined: bool = True
    ) -> None:
        self._threads = threads
        self._copies = COPIES_JOINED if joined else COPIES
        self._only = only
        self._most_waiting_bytes = memory_bytes * SORTED_SHARE
        self._waiting: list[Rows] = []
        self._sorted: list[_Sorted] = []
        self._reduced: list[Rows] = []
        self._in_parts, self._arrived = np.zeros((2, PARTS), np.int64)
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
        at_once = np.where(self._in_parts > self._most_rows, BLOCK_ROWS, self._in_parts)
        compared = int(np.sort(at_once)[-self._threads :].sum())
        copied = compared * self._held_bytes // max(1, self.rows)
        held = max(int(self._held_bytes * (1 + SPARE)), int(self._key_bytes * self._copies))
        return held + PART_BYTES * compared + copied

    @property
    def arrived(self) -> int:
        """The number of rows that were added."""
        return int(self._arrived.sum()) + self._waiting_rows

    def take(self) -> Iterator[Rows]:
        """Removes all rows, and yields what is kept of each part: all of a key together, in log order."""
        most_rows = self._most_rows
        return parallel(lambda pieces: self._kept(pieces, most_rows), self._parts(), self._threads, ahead=2)

    def reduce(self) -> None:
        """Keeps what is kept of each part."""
        self._sort()
        self._hold(list(self.take()))

    @property
    def _most_rows(self) -> int:
        """Of one part that are copied and compared at once."""
        parts = np.count_nonzero(self._arrived)  # few in a range that was narrowed
        return max(BLOCK_ROWS, HOT * self.rows // max(1, int(parts)))

    def _parts(self) -> Iterator[list[Rows]]:
        """Removes all rows, and yields the pieces of each part, or the only one there is if all rows still wait."""
        if self._sorted or self._reduced:
            self._sort()
        waiting, in_order, reduced = self._waiting, self._sorted, self._reduced
        self._clear()
        if not in_order and not reduced:
            yield waiting
            return
        reduced.reverse()
        for index in range(PARTS):
            before = [reduced.pop()] if reduced else []
            yield [*before, *(rows.part(index) for rows in in_order)]
            if index % _IN_GROUP == _IN_GROUP - 1:
                for rows in in_order:
                    del rows.groups[0]
                pa.default_memory_pool().release_unused()

    def _kept(self, pieces: list[Rows], most_rows: int) -> Rows:
        if sum(rows.count for rows in pieces) > most_rows:
            pieces = [self._only(Rows.joined(block).sorted()) for block in _blocks(pieces, BLOCK_ROWS)]
        return self._only(Rows.joined(pieces).sorted())

    def keep(self, kept: HashRange) -> None:
        """Removes rows of other parts, and does not count them as arrived. To be called right after `reduce`."""
        others = [index for index in range(PARTS) if not kept.first <= index < kept.end]
        self._arrived[others] = 0
        for index in others:
            self._reduced[index] = self._reduced[index].take(_NONE)
        self._hold(self._reduced)

    def _hold(self, reduced: list[Rows]) -> None:
        self._reduced = reduced
        self.rows = sum(rows.count for rows in reduced)
        self._held_bytes = sum(rows.held_bytes for rows in reduced)
        self._key_bytes = sum(rows.keys.nbytes for rows in reduced)

    def _clear(self) -> None:
        self._waiting, self._sorted, self._reduced = [], [], []
        self._in_parts[:] = 0
        self._waiting_bytes = self._waiting_rows = self._held_bytes = self._key_bytes = self.rows = 0

    def _sort(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting, self._waiting_bytes, self._waiting_rows = self._waiting, [], 0, 0
        rows = _Sorted.of(Rows.joined(waiting))
        self._in_parts += np.diff(rows.starts)
        self._arrived += np.diff(rows.starts)
        self._sorted.append(rows)


def _blocks(pieces: list[Rows], most_rows: int) -> Iterator[list[Rows]]:
    """The same pieces in lists of so many rows, or a little more."""
    block: list[Rows] = []
    rows = 0
    for piece in pieces:
        block.append(piece)
        rows += piece.count
        if rows >= most_rows:
            yield block
            block, rows = [], 0
    yield block
