"""Compares the keys of one part of a hash range by offset: of each key the last record stays (C9).

    dirty ──► held ──► the latest of each key, whenever memory is full ──► winners
    clean ──► some at a time, before the winners ──► lost where a later one has the key

Each clean key is there once (C4), so the clean part passes by: memory follows the keys that are dirty.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lithify.columnar.hash_range import Hashes, HashRange
from lithify.columnar.key_source import KeySource, MemoryExceededError, gathered
from lithify.columnar.latest_rows import BYTES_PER_ROW, latest_rows
from lithify.columnar.marks import Integers
from lithify.columnar.ranks import EXPIRED_BIT, ORDINAL_SHIFT, PAST_BIT, RANK, Flags, Portion
from lithify.columnar.schema import KEY

EARLY_ROWS = 1 << 20
"""So many rows are held before it is tried how many of them are the latest of their key."""

WORTHWHILE = 0.8
"""Where fewer than this part of the rows were, it is done again as soon as three times as many are held, so that
memory follows the keys. Else only when memory is full: to look again and again would cost more than it frees."""

CLEAN_ROWS = 1 << 20
"""So many clean rows, or as many as there are winners, are judged at a time."""

PICKED_BYTES = 2**20
"""So much is hashed at a time to pick the rows of a part: batches of small segments are small."""

FULL_AGAIN = 3 / 4
"""Memory that is this full of winners alone would soon be full again: the part is too large for it."""


class OffsetComparison:
    """One try at one part of a range, within `memory_bytes`. `hashes` gives those of keys."""

    def __init__(
        self, source: KeySource, part: HashRange, hashes: Callable[[pa.Array], Hashes], memory_bytes: int
    ) -> None:
        self._source = source
        self._part = part
        self._hashes = hashes
        self._memory_bytes = memory_bytes

    def run(self) -> None:
        """Raises `MemoryExceededError`, or what the source raises."""
        rows = self._folded()
        latest = self._are_latest(rows)
        ranks = rows.ranks[latest]
        stays = self._source.tally.win(ranks, np.zeros(len(ranks), np.bool_))
        self._source.marks.add(ranks[stays] >> ORDINAL_SHIFT)
        if self._source.has(Portion.CLEAN):
            rows = rows.only(latest)  # lets the others go
            self._judge_clean(rows)

    def _folded(self) -> _Rows:
        """The dirty rows, but for those of which it was seen on the way that a later one has their key."""
        held, enough = _Held(), EARLY_ROWS
        for rows in self._batches(Portion.DIRTY):
            self._source.tally.compared += rows.count
            held.add(rows)
            if held.rows >= enough or held.needed_bytes > self._memory_bytes:
                before = held.rows
                held.add(self._latest(held.take()))
                if held.needed_bytes > self._memory_bytes * FULL_AGAIN:
                    raise MemoryExceededError
                enough = max(EARLY_ROWS, 3 * held.rows) if held.rows < before * WORTHWHILE else sys.maxsize
        return held.take()

    def _judge_clean(self, winners: _Rows) -> None:
        together = winners.count + max(CLEAN_ROWS, winners.count)
        held = _Held()
        for rows in self._batches(Portion.CLEAN):
            if not held.rows:
                held.add(winners)
            held.add(rows)
            if held.rows >= together or held.needed_bytes > self._memory_bytes:
                self._take_lost(held.take(), winners.count)
        if held.rows:
            self._take_lost(held.take(), winners.count)

    def _take_lost(self, rows: _Rows, winners: int) -> None:
        """Of `rows` in log order the winners come last, since all that is clean is older."""
        clean = rows.count - winners
        superseded, ranks = ~self._are_latest(rows)[:clean], rows.ranks[:clean]
        judged = superseded | (ranks & (EXPIRED_BIT | PAST_BIT) > 0)
        superseded, ranks = superseded[judged], ranks[judged]
        goes = self._source.tally.judge_clean(ranks, superseded, np.zeros(len(ranks), np.bool_))
        self._source.marks.add(ranks[goes] >> ORDINAL_SHIFT)

    def _latest(self, rows: _Rows) -> _Rows:
        return rows.only(self._are_latest(rows))

    def _are_latest(self, rows: _Rows) -> Flags:
        return latest_rows(rows.keys, self._hashes(rows.keys))

    def _batches(self, portion: Portion) -> Iterator[_Rows]:
        """The rows of this part."""
        batches = self._source.keys(portion)
        if self._part.count == 1:
            yield from map(_rows, batches)
            return
        for rows in map(_rows, gathered(batches, PICKED_BYTES)):
            yield rows.only(self._part.holds(self._hashes(rows.keys)))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Keys and their ranks."""

    keys: pa.BinaryArray
    ranks: Integers

    @property
    def count(self) -> int:
        return len(self.ranks)

    def only(self, wanted: Flags) -> _Rows:
        return _Rows(self.keys.filter(pa.array(wanted)), self.ranks[wanted])


def _rows(batch: pa.RecordBatch) -> _Rows:
    return _Rows(batch.column(KEY), np.asarray(batch.column(RANK).to_numpy(), np.int64))


class _Held:
    """Rows that are held, and the memory that it takes to compare them."""

    def __init__(self) -> None:
        self._keys: list[pa.BinaryArray] = []
        self._ranks: list[Integers] = []
        self._key_bytes = 0
        self.rows = 0

    def add(self, rows: _Rows) -> None:
        self._keys.append(rows.keys)
        self._ranks.append(rows.ranks)
        self._key_bytes += rows.keys.nbytes
        self.rows += rows.count

    @property
    def needed_bytes(self) -> int:
        """What is held, and the more of: its keys once more, to put them together, or what comparing takes."""
        return self._key_bytes + 8 * self.rows + max(self._key_bytes, BYTES_PER_ROW * self.rows)

    def take(self) -> _Rows:
        """The rows in log order, from here on the caller's alone."""
        ranks, self._ranks = np.concatenate([_NO_RANKS, *self._ranks]), []
        keys, self._keys = pa.concat_arrays([_NO_KEYS, *self._keys]), []
        self._key_bytes, self.rows = 0, 0
        if (ranks[1:] < ranks[:-1]).any():  # blocks of a shuffle come in any order
            order = np.argsort(ranks)
            return _Rows(keys.take(pa.array(order)), ranks[order])
        return _Rows(keys, ranks)


_NO_KEYS = pa.array([], pa.binary())
_NO_RANKS = np.array([], np.int64)
