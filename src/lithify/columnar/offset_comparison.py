"""Compares the keys of one part of a hash range by offset: of each key the last record stays (C9).

    dirty ──► held ──► the latest of each key, whenever memory is full ──► winners
    clean ──► some at a time, before the winners ──► lost where a later one has the key

Each clean key is there once (C4), so the clean part passes by: memory follows the keys that are dirty.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from lithify.columnar.hash_range import Hashes, HashRange
from lithify.columnar.key_source import KeySource, MemoryExceededError, gathered
from lithify.columnar.latest_rows import BYTES_PER_ROW, latest_rows
from lithify.columnar.marks import Integers
from lithify.columnar.ranks import EXPIRED_BIT, ORDINAL_SHIFT, PAST_BIT, RANK, RANKED_KEYS, Flags, Portion
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
        winners = self._winners()
        ranks = _ranks(winners)
        stays = self._source.tally.win(ranks, np.zeros(len(ranks), np.bool_))
        self._source.marks.add(ranks[stays] >> ORDINAL_SHIFT)
        if self._source.has(Portion.CLEAN):
            self._judge_clean(winners)

    def _winners(self) -> pa.RecordBatch:
        held, enough = _Held(), EARLY_ROWS
        for batch in self._batches(Portion.DIRTY):
            self._source.tally.compared += batch.num_rows
            held.add(batch)
            if held.rows >= enough or held.needed_bytes > self._memory_bytes:
                before = held.rows
                held.add(self._latest(held.take()))
                if held.needed_bytes > self._memory_bytes * FULL_AGAIN:
                    raise MemoryExceededError
                enough = max(EARLY_ROWS, 3 * held.rows) if held.rows < before * WORTHWHILE else sys.maxsize
        return self._latest(held.take())

    def _latest(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.filter(pa.array(self._are_latest(rows)))

    def _judge_clean(self, winners: pa.RecordBatch) -> None:
        together = winners.num_rows + max(CLEAN_ROWS, winners.num_rows)
        held = _Held()
        for batch in self._batches(Portion.CLEAN):
            if not held.rows:
                held.add(winners)
            held.add(batch)
            if held.rows >= together or held.needed_bytes > self._memory_bytes:
                self._take_lost(held.take(), len(winners))
        if held.rows:
            self._take_lost(held.take(), len(winners))

    def _take_lost(self, rows: pa.RecordBatch, winners: int) -> None:
        """Of `rows` in log order the winners come last, since all that is clean is older."""
        clean = len(rows) - winners
        superseded, ranks = ~self._are_latest(rows)[:clean], _ranks(rows)[:clean]
        judged = superseded | (ranks & (EXPIRED_BIT | PAST_BIT) > 0)
        superseded, ranks = superseded[judged], ranks[judged]
        goes = self._source.tally.judge_clean(ranks, superseded, np.zeros(len(ranks), np.bool_))
        self._source.marks.add(ranks[goes] >> ORDINAL_SHIFT)

    def _are_latest(self, rows: pa.RecordBatch) -> Flags:
        keys = rows.column(KEY)
        return latest_rows(keys, self._hashes(keys))

    def _batches(self, portion: Portion) -> Iterator[pa.RecordBatch]:
        """The rows of this part."""
        batches = self._source.keys(portion)
        if self._part.count == 1:
            yield from batches
            return
        for batch in gathered(batches, PICKED_BYTES):
            yield batch.filter(pa.array(self._part.holds(self._hashes(batch.column(KEY)))))


class _Held:
    """Rows that are held, and the memory that it takes to compare them."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self.rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self._bytes += batch.nbytes
        self.rows += batch.num_rows

    @property
    def needed_bytes(self) -> int:
        """What is held, and the more of: once more, to put it together, or what comparing takes."""
        return self._bytes + max(self._bytes, BYTES_PER_ROW * self.rows)

    def take(self) -> pa.RecordBatch:
        """The rows in log order, from here on the caller's alone."""
        rows = pa.concat_batches([_NO_ROWS, *self._batches])
        self._batches, self._bytes, self.rows = [], 0, 0
        if (np.diff(_ranks(rows)) < 0).any():  # blocks of a shuffle come in any order
            rows = rows.take(pa.array(np.argsort(_ranks(rows))))
        return rows


_NO_ROWS = pa.RecordBatch.from_pylist([], schema=RANKED_KEYS)


def _ranks(rows: pa.RecordBatch) -> Integers:
    return np.asarray(rows.column(RANK).to_numpy(), np.int64)
