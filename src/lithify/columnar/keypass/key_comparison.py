"""Compares the keys of one part of a hash range: one record of each key stays (C4, C9, C10, C20).

    dirty ────► buffered ──► whenever memory is full, reduced to the highest of each key ──► winners
    clean ────► streamed, compared with the winners ──► the higher of both stays
    above_horizon ──► streamed, compared with expired winning tombstones ──► held if one has a lower order
    chunks ───► the same ──► held if there is one

The highest record of a key is the last in log order or, with orders, the last of those with the highest
order. Each clean key occurs once (C4), so the clean part is streamed, as are the part above the horizon
(`above_horizon`) and chunks (C53): memory grows with the number of dirty keys only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lithify.columnar.keypass.held_rows import Held, Rows
from lithify.columnar.keypass.key_hash import HashRange, KeyHash
from lithify.columnar.keypass.key_source import KeyResults, KeySource, MemoryExceededError, of_part
from lithify.columnar.keypass.latest_rows import latest_rows
from lithify.columnar.keypass.ranks import EXPIRED_BIT, ONLY_ASKED, ORDINAL_SHIFT, PAST_BIT, Flags, Portion, has
from lithify.columnar.segment.convert import pieces
from lithify.columnar.segment.dead_records import Integers

EARLY_ROWS = 1 << 20
"""The number of buffered rows at which they are first reduced to the highest of each key."""

WORTHWHILE = 0.8
"""If less than this fraction is left, the rows are reduced again at three times as many, so that memory grows with
the keys; else only when memory is full, since reducing often would cost more than it frees."""

PASSING_ROWS = 1 << 20
"""Streamed rows compared at a time, or as many as the rows they are compared with, if those are more."""

FULL_AGAIN = 3 / 4
"""If winners alone fill this fraction of the memory, the part is too large for it."""

PIECES = 8
"""Batches are read in pieces of at most 1/PIECES of the memory."""


class KeyComparison:
    """One attempt at one part of a range, within `memory_bytes`; `hashes` is the hash that defines the ranges."""

    def __init__(self, source: KeySource, part: HashRange, hashes: KeyHash, memory_bytes: int) -> None:
        self._source = source
        self._part = part
        self._hashes = hashes
        self._memory_bytes = memory_bytes
        self._results = KeyResults(source.starts)

    def run(self) -> KeyResults:
        """Raises `MemoryExceededError`, or what the source raises."""
        rows = self._folded()
        highest = self._are_highest(rows)
        waits = self._may_hold
        if not waits and not self._source.has(Portion.CLEAN):
            self._win(rows.ranks[highest], _none(int(highest.sum())))
            return self._results
        winners = rows.only(highest)
        del rows  # frees the superseded rows
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
        rows = self._folded()
        return rows.only(self._are_highest(rows))

    def _folded(self) -> Rows:
        """The dirty rows in log order, without those found superseded whenever the buffer was reduced."""
        held, enough = Held(), EARLY_ROWS
        for rows in self._batches(Portion.DIRTY):
            self._results.tally.compared += rows.count
            held.add(rows)
            if held.rows >= enough or held.needed_bytes() > self._memory_bytes:
                before = held.rows
                held.add(self._highest(held.take()))
                self._check(held)
                enough = max(EARLY_ROWS, 3 * held.rows) if held.rows < before * WORTHWHILE else sys.maxsize
        return held.take()

    def _judge_clean(self, winners: Rows) -> tuple[Flags, Held]:
        """Judges clean rows. Returns for each winner whether a clean row supersedes it, and the expired clean
        tombstones that records above the horizon, or chunks, may hold."""
        superseded_winners, depends = _none(winners.count), Held()
        waits = self._may_hold
        for rows in self._followed_by(Portion.CLEAN, winners):
            highest, clean = self._are_highest(rows), rows.count - winners.count
            superseded_winners |= ~highest[clean:]
            superseded, ranks = ~highest[:clean], rows.ranks[:clean]
            expired = has(ranks, EXPIRED_BIT) & ~superseded & waits
            depends.add(rows.first(clean).only(expired))
            self._check(depends)
            candidates = superseded | (ranks & (EXPIRED_BIT | PAST_BIT) > 0) & ~expired
            self._judge(ranks[candidates], superseded[candidates], _none(int(candidates.sum())))
        return superseded_winners, depends

    def _are_held(self, tombstones: Rows) -> Flags:
        """For each tombstone whether a record of its key above the horizon has a lower order (C20), or whether there is
        a chunk of its key (C53): bool."""
        held, by_chunks = _none(tombstones.count), _none(tombstones.count)
        for rows in self._followed_by(Portion.ABOVE_HORIZON, tombstones):
            above_horizon = rows.count - tombstones.count
            self._results.tally.asked += above_horizon
            lowest = latest_rows(rows.keys, self._hashes(rows.keys), rows.by_order_descending())
            held |= ~lowest[above_horizon:]
        for rows in self._followed_by(Portion.CHUNKS, tombstones):
            chunks = rows.count - tombstones.count
            self._results.tally.asked += chunks
            first = latest_rows(rows.keys, self._hashes(rows.keys), np.arange(rows.count)[::-1])
            by_chunks |= ~first[chunks:]
        self._results.tally.held_by_chunks += int(np.count_nonzero(by_chunks))
        return held | by_chunks

    @property
    def _may_hold(self) -> bool:
        """Whether anything may hold back an expired tombstone."""
        return any(map(self._source.has, ONLY_ASKED))

    def _win(self, ranks: Integers, held: Flags) -> None:
        stays = self._results.tally.win(ranks, held)
        self._results.dead.spare(ranks[stays] >> ORDINAL_SHIFT)

    def _judge(self, ranks: Integers, superseded: Flags, held: Flags) -> None:
        goes = self._results.tally.judge_clean(ranks, superseded, held)
        self._results.dead.add(ranks[goes] >> ORDINAL_SHIFT)

    def _followed_by(self, portion: Portion, judges: Rows) -> Iterator[Rows]:
        """Yields the rows of a portion, some at a time, each time followed by `judges`, whose ranks are higher."""
        held, at_once = Held(), max(PASSING_ROWS, judges.count)
        for rows in self._batches(portion):
            held.add(rows)
            if held.rows >= at_once or held.needed_bytes(beside=judges) > self._memory_bytes:
                held.add(judges)
                yield held.take()
        if held.rows:
            held.add(judges)
            yield held.take()

    def _highest(self, rows: Rows) -> Rows:
        return rows.only(self._are_highest(rows))

    def _are_highest(self, rows: Rows) -> Flags:
        return latest_rows(rows.keys, self._hashes(rows.keys), rows.by_order())

    def _check(self, held: Held) -> None:
        if held.rows > 1 and held.needed_bytes() > self._memory_bytes * FULL_AGAIN:
            raise MemoryExceededError

    def _batches(self, portion: Portion) -> Iterator[Rows]:
        """The rows of this part. What is only asked has no ordinals; its rank is -1, below all others."""
        batches = of_part(self._source.keys(portion), self._part, self._hashes)
        for rows in map(Rows.of, pieces(batches, self._memory_bytes // PIECES)):
            yield rows if portion not in ONLY_ASKED else replace(rows, ranks=np.full(rows.count, -1))


def _none(count: int) -> Flags:
    return np.zeros(count, np.bool_)
