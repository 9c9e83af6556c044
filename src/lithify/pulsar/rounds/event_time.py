"""Which message of each key remains in event-time order: Pulsar's rule, which depends on the order of publication.

    k=1@5   k=2@3   k=∅@4   k=3@4   k=∅@6   k=4@2        @: event time
    ╰stays  ╰older  ╰older  ╰older  ╰deletes, is forgotten
                                            ╰stays

So messages are compared in that order, and what was found of a first part is all that the rest needs to know of
it. Where sealed batches hide keys, messages compete in a way that no summary of a part tells (`rules.survivors`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lithify.columnar.key_hash import HashRange, KeyHash
from lithify.columnar.keypass.held_rows import Held, Rows
from lithify.columnar.keypass.key_comparison import EARLY_ROWS, FULL_AGAIN, GROWN, PIECES, WORTHWHILE
from lithify.columnar.keypass.key_source import KeyResults, KeySource, MemoryExceededError
from lithify.columnar.keypass.keys.key_groups import grouped
from lithify.columnar.keypass.ranks import ORDINAL_SHIFT, Portion, has
from lithify.columnar.segment.convert import pieces
from lithify.columnar.segment.dead_records import Flags, Integers
from lithify.pulsar.compaction.rules import KeyedMessage, survivors
from lithify.pulsar.rounds.entry_ranks import BATCHED_BIT, EMPTY_BIT

FEW_KEYS = 16
"""So many keys with messages left are compared key by key; more at once, a message of each."""


class EventTimeComparison:
    """One attempt at one part of a range, within `memory_bytes`; `hashes` is the hash that defines the ranges.

    All messages are in the dirty portion; orders are event times. `sealed` are the ordinals of sealed batches,
    ascending.
    """

    def __init__(
        self,
        source: KeySource,
        part: HashRange,
        hashes: KeyHash,
        memory_bytes: int,
        *,
        sealed: Sequence[int] = (),
        in_order: bool = True,
    ) -> None:
        self._source = source
        self._part = part
        self._hashes = hashes
        self._memory_bytes = memory_bytes
        self._sealed = [(ordinal,) for ordinal in sealed]
        self._reduces = in_order and not sealed
        self._results = KeyResults(source.starts)

    def run(self) -> KeyResults:
        """Raises `MemoryExceededError`, or what the source raises."""
        rows = self._folded()
        stays = rows.ranks[self._staying(rows)]
        self._results.tally.win(stays, np.zeros(len(stays), np.bool_))
        self._results.dead.spare(stays >> ORDINAL_SHIFT)
        return self._results

    def _folded(self) -> Rows:
        """The rows in order, without those that have lost whenever the buffer was reduced."""
        held, enough = Held(), EARLY_ROWS
        for batch in pieces(self._source.keys(Portion.DIRTY), self._memory_bytes // PIECES):
            rows = Rows.of(batch, self._part, self._hashes)
            self._results.tally.compared += rows.count
            held.add(rows)
            if held.rows >= enough or held.needed_bytes > self._memory_bytes:
                before = held.rows
                if self._reduces:
                    begun = held.take()
                    held.add(begun.only(self._staying(begun)))
                if held.rows > 1 and held.needed_bytes > self._memory_bytes * FULL_AGAIN:
                    raise MemoryExceededError
                enough = max(EARLY_ROWS, GROWN * held.rows) if held.rows < before * WORTHWHILE else sys.maxsize
        return held.take()

    def _staying(self, rows: Rows) -> Flags:
        """For each row whether it remains: bool."""
        if rows.orders is None:  # there are no rows
            return np.zeros(rows.count, np.bool_)
        times, empty, batched = rows.orders.to_numpy(), has(rows.ranks, EMPTY_BIT), has(rows.ranks, BATCHED_BIT)
        order, starts = grouped(rows.keys, rows.halves)
        stays = np.zeros(rows.count, np.bool_)
        if self._sealed:
            for start, end in pairwise(starts.tolist()):
                of_key = [
                    KeyedMessage(
                        (int(rows.ranks[row]) >> ORDINAL_SHIFT,), bool(empty[row]), int(times[row]), bool(batched[row])
                    )
                    for row in order[start:end]
                ]
                kept = {message.position for message in survivors(of_key, "event-time", self._sealed)}
                stays[order[start:end]] = [message.position in kept for message in of_key]
            return stays
        holders = newest(times[order], empty[order], batched[order], starts)
        stays[order[holders[holders >= 0]]] = True
        return stays


def newest(times: Integers, empty: Flags, batched: Flags, starts: Integers) -> Integers:
    """The row that holds each key after all of its rows, -1 for a key that is deleted: int64.

    Rows are sorted by key and then by publication; a key's rows start at `starts`, which ends with their number.
    """
    sizes = np.diff(starts)
    holders = np.full(len(sizes), -1, np.int64)
    left, at = np.arange(len(sizes)), 0
    while len(left) > FEW_KEYS:
        rows, held = starts[left] + at, holders[left]
        newer = np.where(batched[rows], times[rows] > times[held], times[rows] >= times[held]) | (held < 0)
        holders[left[newer]] = np.where(empty[rows], -1, rows)[newer]
        at += 1
        left = left[sizes[left] > at]
    for key in left.tolist():
        holder = int(holders[key])
        for row in range(int(starts[key]) + at, int(starts[key + 1])):
            is_newer = times[row] > times[holder] if batched[row] else times[row] >= times[holder]
            if holder < 0 or is_newer:
                holder = -1 if empty[row] else row
        holders[key] = holder
    return holders
