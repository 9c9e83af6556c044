"""Compares the keys of one part of a hash range: one record of each key remains (C4, C9, C10, C20).

    dirty ────► buffered ──► whenever memory is full, reduced to the highest of each key ──► winners
                    └─ still full ──► fewer parts of the range are kept; the others are left to be read again
    clean ────► streamed, compared with the winners ──► the higher of both stays
    above_horizon ──► streamed, compared with expired winning tombstones ──► held if one has a lower order
    chunks ───► the same ──► held if there is one

The highest record of a key is the last in log order or, with orders, the last of those with the highest
order. Each clean key occurs once (C4), so the clean part is streamed, as are the part above the horizon
(`above_horizon`) and chunks (C53): memory grows with the number of dirty keys only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from lithify.columnar.key_hash import PARTS, HashRange, KeyHash
from lithify.columnar.keypass.held_rows import Held, Rows
from lithify.columnar.keypass.key_source import SPARE, KeyResults, KeySource, MemoryExceededError
from lithify.columnar.keypass.keys.key_table import MOST_KEYS, KeyTable
from lithify.columnar.keypass.keys.latest_rows import latest_rows
from lithify.columnar.keypass.parted_rows import PartedRows
from lithify.columnar.keypass.ranks import EXPIRED_BIT, ONLY_ASKED, ORDINAL_SHIFT, PAST_BIT, Flags, Portion, has
from lithify.columnar.segment.convert import pieces
from lithify.columnar.segment.dead_records import Integers
from lithify.rules.compaction.key_pass_shape import MAX_READS
from lithify.waits.overlap import one_ahead

EARLY_ROWS = 1 << 21
"""The number of buffered rows at which they are first reduced to the highest of each key."""

GROWN, WORTHWHILE = 4, 0.8
"""If less than this fraction is left, the rows are reduced again at four times as many, so that memory grows with
the keys. Else they are reduced only when memory is full, since reducing often would cost more than it frees."""

WORTHWHILE_AHEAD = 0.5
"""The same fraction where keys are read ahead, which waits while rows are reduced."""

FULL_AGAIN = 3 / 4
"""If winners alone fill this fraction of the memory once it was full, the part may be too large for it."""

LEAST_PARTS = -(-PARTS // MAX_READS)
"""Of one range of a log that is too large, at least so many parts are kept, so that it is read few times. Of two ranges
twice as many each."""

_BLOCK = 1 << 16
"""Winners counted at a time, so that intermediate arrays fit into the processor's cache."""

PIECES = 8
"""Batches are read in pieces of at most 1/PIECES of the memory."""


class KeyComparison:
    """One attempt at one part of a range, within `memory_bytes`; `hashes` is the hash that defines the ranges.

    With `ahead` keys are read on one thread and hashed on another, each a batch ahead of the one that holds them, and
    compared on two.
    """

    def __init__(
        self, source: KeySource, part: HashRange, hashes: KeyHash, memory_bytes: int, *, ahead: bool = False
    ) -> None:
        self._source = source
        self._part = part
        self._hashes = hashes
        self._memory_bytes = memory_bytes
        self._ahead = ahead
        self._results = KeyResults(source.starts)

    def run(self) -> KeyResults:
        """The results of the part, or of some of it with what is left.

        Raises `MemoryExceededError`, or what the source raises.
        """
        waits = self._may_hold
        joined = waits or self._source.has(Portion.CLEAN)
        rows = self._folded(self._narrow, joined=joined)
        if not joined:
            for latest in rows.take():
                self._win(latest.ranks, _none(latest.count))
            return self._results
        winners = _latest(rows).sorted() if waits else _latest(rows)
        superseded_winners, tombstones = self._judge_clean(winners)
        clean = tombstones.rows
        winners = winners.only(~superseded_winners)
        ranks, expired = winners.ranks, has(winners.ranks, EXPIRED_BIT) & waits
        tombstones.add(winners.only(expired))
        del winners
        self._check(tombstones)
        oldest = tombstones.take()  # the clean ones come first
        held = self._are_held(oldest)
        self._judge(oldest.ranks[:clean], _none(clean), held[:clean])
        held_winners = _none(len(ranks))
        held_winners[expired] = held[clean:]
        self._win(ranks, held_winners)
        return self._results

    def latest(self) -> Rows:
        """The latest dirty row of each key, in log order. Raises as `run` does."""
        return _latest(self._folded(_refuse, joined=True)).sorted()

    def _folded(self, if_full: Callable[[PartedRows, float], None], *, joined: bool) -> PartedRows:
        """The dirty rows, without those found superseded whenever they were reduced.

        `if_full` is told the share of the rows added last that was not superseded.
        """
        threads, worthwhile = (2, WORTHWHILE_AHEAD) if self._ahead else (1, WORTHWHILE)
        held, enough = PartedRows(self._memory_bytes, _highest, threads, joined=joined), EARLY_ROWS
        reduced = 0
        for rows in self._batches(Portion.DIRTY):
            held.add(rows.of_parts(self._part) if self._results.left else rows)  # it may have been hashed before
            full = held.needed_bytes > self._memory_bytes
            if full or held.rows >= enough:
                before = held.rows
                held.reduce()
                if full and held.rows > 1 and held.needed_bytes > self._memory_bytes * FULL_AGAIN:
                    if_full(held, (held.rows - reduced) / max(1, before - reduced))
                reduced = held.rows
                enough = max(EARLY_ROWS, GROWN * held.rows) if held.rows < before * worthwhile else sys.maxsize
        self._results.tally.compared = held.arrived
        return held

    def _narrow(self, held: PartedRows, new: float) -> None:
        """Keeps the rows of as many parts as will fit, if not all will. Of rows to come the share `new` is expected to
        stay, as of those that came last."""
        read = self._source.dirty_read
        coming = new * held.arrived / held.rows * (1 - read) / max(read, 1 / PARTS)
        parts = int(self._part.parts * self._memory_bytes / (held.needed_bytes * (1 + coming) * SPARE))
        if parts >= self._part.parts:
            return
        if self._part.parts < PARTS or parts < LEAST_PARTS * self._part.count:
            raise MemoryExceededError
        self._part, *self._results.left = self._part.cut_off(parts)
        held.keep(self._part)

    def _judge_clean(self, winners: Rows) -> tuple[Flags, Held]:
        """Judges clean rows. Returns for each winner whether a clean row supersedes it, and the expired clean
        tombstones that records above the horizon, or chunks, may hold."""
        superseded_winners, depends = _none(winners.count), Held()
        waits = self._may_hold
        for rows, numbers in self._found_in(winners, Portion.CLEAN):
            superseded = numbers >= 0
            if rows.orders is not None:
                meets = np.flatnonzero(superseded)
                higher = rows.are_above(meets, winners, numbers[meets])
                superseded[meets[higher]] = False
                superseded_winners[numbers[meets[higher]]] = True
            goes = np.flatnonzero(superseded | (rows.ranks & (EXPIRED_BIT | PAST_BIT) > 0))
            if waits:
                waiting = has(rows.ranks[goes], EXPIRED_BIT) & ~superseded[goes]
                depends.add(rows.take(goes[waiting]))
                self._check(depends)
                goes = goes[~waiting]
            self._judge(rows.ranks[goes], superseded[goes], _none(len(goes)))
        return superseded_winners, depends

    def _are_held(self, tombstones: Rows) -> Flags:
        """For each tombstone whether a record of its key above the horizon has a lower order (C20), or whether there is
        a chunk of its key (C53): bool."""
        held, by_chunks = _none(tombstones.count), _none(tombstones.count)
        for rows, numbers in self._found_in(tombstones, Portion.ABOVE_HORIZON):
            self._results.tally.asked += rows.count
            meets = np.flatnonzero(numbers >= 0)
            lower = rows.are_below(meets, tombstones, numbers[meets])
            held[numbers[meets[lower]]] = True
        for rows, numbers in self._found_in(tombstones, Portion.CHUNKS):
            self._results.tally.asked += rows.count
            by_chunks[numbers[numbers >= 0]] = True
        self._results.tally.held_by_chunks += int(np.count_nonzero(by_chunks))
        return held | by_chunks

    @property
    def _may_hold(self) -> bool:
        """Whether anything may hold back an expired tombstone."""
        return any(map(self._source.has, ONLY_ASKED))

    def _win(self, ranks: Integers, held: Flags) -> None:
        for start in range(0, len(ranks), _BLOCK):
            some = ranks[start : start + _BLOCK]
            stays = self._results.tally.win(some, held[start : start + _BLOCK])
            self._results.dead.spare(some[stays] >> ORDINAL_SHIFT)

    def _judge(self, ranks: Integers, superseded: Flags, held: Flags) -> None:
        goes = self._results.tally.judge_clean(ranks, superseded, held)
        self._results.dead.add(ranks[goes] >> ORDINAL_SHIFT)

    def _found_in(self, some: Rows, portion: Portion) -> Iterator[tuple[Rows, Integers]]:
        """Yields the rows of a portion, some at a time, with the number of each one's key in `some`, -1 for none."""
        if not self._source.has(portion):
            return
        if some.count > MOST_KEYS:
            raise MemoryExceededError
        table = KeyTable(some.keys, some.halves)
        for rows in self._batches(portion, some.keys):
            yield rows, table.find(rows.keys, rows.halves)

    def _check(self, held: Held) -> None:
        if held.rows > 1 and held.needed_bytes > self._memory_bytes * FULL_AGAIN:
            raise MemoryExceededError

    def _batches(self, portion: Portion, wanted: pa.Array | None = None) -> Iterator[Rows]:
        """The rows of this part. What is only asked has no ordinals; its rank is -1, below all others."""
        keys = self._source.keys(portion, wanted)
        batches = pieces(one_ahead(keys) if self._ahead else keys, self._memory_bytes // PIECES)
        hashed = map(partial(self._hashed, portion), batches)  # which keeps none while the next is read
        return one_ahead(hashed) if self._ahead else hashed

    def _hashed(self, portion: Portion, batch: pa.RecordBatch) -> Rows:
        rows = Rows.of(batch, self._part, self._hashes)
        return rows if portion not in ONLY_ASKED else replace(rows, ranks=np.full(rows.count, -1))


def _refuse(_: PartedRows, __: float) -> None:
    raise MemoryExceededError


def _latest(rows: PartedRows) -> Rows:
    return Rows.joined(list(rows.take()))


def _highest(rows: Rows) -> Rows:
    return rows.only(latest_rows(rows.keys, rows.halves, rows.by_order()))


def _none(count: int) -> Flags:
    return np.zeros(count, np.bool_)
