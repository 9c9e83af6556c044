"""Compares the keys of one part of a hash range: of each key one record stays (C4, C9, C10, C20).

    dirty ────► held ──► the highest of each key, whenever memory is full ──► winners
    clean ────► some at a time, beside the winners ──► the higher of both stays
    waiting ──► some at a time, beside the expired tombstones that stay ──► held if one has a lower order

The highest is the last in log order, or of those with the highest order the last. Each clean key is there
once (C4), so the clean part passes by, as what waits does: memory follows the keys that are dirty.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from lithify.columnar.keypass.held_rows import Held, Rows
from lithify.columnar.keypass.key_source import KeySource, MemoryExceededError, of_part, pieces
from lithify.columnar.keys.hash_range import HashRange
from lithify.columnar.keys.key_hash import KeyHash
from lithify.columnar.keys.latest_rows import latest_rows
from lithify.columnar.keys.ranks import EXPIRED_BIT, ORDINAL_SHIFT, PAST_BIT, Flags, Portion, has
from lithify.columnar.segment.positions import Integers

EARLY_ROWS = 1 << 20
"""So many rows are held before it is tried how many of them are the latest of their key."""

WORTHWHILE = 0.8
"""Where fewer than this part of the rows were, it is done again as soon as three times as many are held, so that
memory follows the keys. Else only when memory is full: to look again and again would cost more than it frees."""

PASSING_ROWS = 1 << 20
"""So many rows that pass by, or as many as those beside them, are judged at a time."""

FULL_AGAIN = 3 / 4
"""Memory that is this full of winners alone would soon be full again: the part is too large for it."""

PIECES = 8
"""What is read is held in pieces of this part of the memory."""


class KeyComparison:
    """One try at one part of a range, within `memory_bytes`. What ranges are made of are `hashes`."""

    def __init__(self, source: KeySource, part: HashRange, hashes: KeyHash, memory_bytes: int) -> None:
        self._source = source
        self._part = part
        self._hashes = hashes
        self._memory_bytes = memory_bytes

    def run(self) -> None:
        """Raises `MemoryExceededError`, or what the source raises."""
        rows = self._folded()
        highest = self._are_highest(rows)
        waits = self._source.has(Portion.WAITING)
        if not waits and not self._source.has(Portion.CLEAN):
            self._win(rows.ranks[highest], _none(int(highest.sum())))
            return
        winners = rows.only(highest)
        del rows  # lets the others go
        beaten, tombstones = self._judge_clean(winners)
        clean = tombstones.rows
        winners = winners.only(~beaten)
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

    def _folded(self) -> Rows:
        """The dirty rows, but for those of which it was seen on the way that a higher one has their key."""
        held, enough = Held(), EARLY_ROWS
        for rows in self._batches(Portion.DIRTY):
            self._source.tally.compared += rows.count
            held.add(rows)
            if held.rows >= enough or held.needed_bytes() > self._memory_bytes:
                before = held.rows
                held.add(self._highest(held.take()))
                self._check(held)
                enough = max(EARLY_ROWS, 3 * held.rows) if held.rows < before * WORTHWHILE else sys.maxsize
        return held.take()

    def _judge_clean(self, winners: Rows) -> tuple[Flags, Held]:
        """Which winners are beaten, and the expired clean tombstones that depend on what waits."""
        beaten, depends = _none(winners.count), Held()
        waits = self._source.has(Portion.WAITING)
        for rows in self._beside(Portion.CLEAN, winners):
            highest, clean = self._are_highest(rows), rows.count - winners.count
            beaten |= ~highest[clean:]
            superseded, ranks = ~highest[:clean], rows.ranks[:clean]
            expired = has(ranks, EXPIRED_BIT) & ~superseded & waits
            depends.add(rows.first(clean).only(expired))
            self._check(depends)
            judged = superseded | (ranks & (EXPIRED_BIT | PAST_BIT) > 0) & ~expired
            self._judge(ranks[judged], superseded[judged], _none(int(judged.sum())))
        return beaten, depends

    def _are_held(self, tombstones: Rows) -> Flags:
        """Which of these something waits above the horizon for, that they beat (C20)."""
        held = _none(tombstones.count)
        for rows in self._beside(Portion.WAITING, tombstones):
            waiting = rows.count - tombstones.count
            self._source.tally.asked += waiting
            lowest = latest_rows(rows.keys, self._hashes(rows.keys), rows.by_order_descending())
            held |= ~lowest[waiting:]
        return held

    def _win(self, ranks: Integers, held: Flags) -> None:
        stays = self._source.tally.win(ranks, held)
        self._source.dead.spare(ranks[stays] >> ORDINAL_SHIFT)

    def _judge(self, ranks: Integers, superseded: Flags, held: Flags) -> None:
        goes = self._source.tally.judge_clean(ranks, superseded, held)
        self._source.dead.add(ranks[goes] >> ORDINAL_SHIFT)

    def _beside(self, portion: Portion, judges: Rows) -> Iterator[Rows]:
        """The rows of a portion, some at a time, all of them before `judges`, whose ranks are above theirs."""
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
        """The rows of this part. Those that wait have ranks below all others: they are not numbered."""
        batches = of_part(self._source.keys(portion), self._part, self._hashes)
        for rows in map(Rows.of, pieces(batches, self._memory_bytes // PIECES)):
            yield rows if portion is not Portion.WAITING else replace(rows, ranks=np.full(rows.count, -1))


def _none(count: int) -> Flags:
    return np.zeros(count, np.bool_)
