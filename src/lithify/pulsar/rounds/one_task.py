"""A round of one partition in one task, where few entries are new: the view is read once.

    new entries ─► the latest message of each key, in memory ─┬─► drops those keys from the view as it is copied
                                                              └─► what stays of the new entries

The keys of a view are unique, so that a message of it loses only if its key is among the new ones. Pulsar's own
compactor reads the view twice. What needs more than that is left to the key pass with a shuffle (`NeedsShuffleError`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.keypass.key_comparison import KeyComparison
from lithify.columnar.keypass.key_hash import Hashes, HashRange, KeyHash
from lithify.columnar.keypass.key_source import MemoryExceededError
from lithify.columnar.keypass.ranks import ORDINAL_SHIFT, has
from lithify.columnar.segment.dead_records import Flags
from lithify.pulsar.rounds.entry_ranks import EMPTY_BIT
from lithify.pulsar.rounds.entry_reader import EntryReader
from lithify.pulsar.rounds.entry_scan import EntryScan, NumberedRange
from lithify.pulsar.rounds.round_messages import RoundMessages, RoundRules
from lithify.pulsar.rounds.view_writing import ViewRange, view_range

WHOLE = HashRange(0, 1)
LEAST_BITS, BITS_MORE, MOST_BITS = 16, 3, 24
"""Of the hashes of new keys, for a table with a byte for each: 8 places for a key, and 16 MiB at most."""


class NeedsShuffleError(Exception):
    """The round needs the key pass with a shuffle: too many keys, or chunks or sealed batches."""

    left_ledger = False
    """Whether the ledger that was begun by then could not be deleted."""


@dataclass(frozen=True, slots=True)
class OneTaskRound:
    """The memory that finding the latest messages may take, in bytes, and the secret seed of hashes."""

    memory_bytes: int
    seed: str = field(repr=False)

    def judge(
        self, reader: EntryReader, rules: RoundRules, ranges: Sequence[NumberedRange], acquire: Callable[[int], None]
    ) -> list[ViewRange]:
        """Reads the new entries of `ranges`; all ranges judged. Raises `NeedsShuffleError`."""
        old = [one for one in ranges if one.entries.compacted]
        new = [one for one in ranges if not one.entries.compacted]
        scan = EntryScan(reader, new, rules, acquire)
        hashes = KeyHash(self.seed)
        try:
            latest = KeyComparison(scan, WHOLE, hashes, self.memory_bytes).latest()
        except MemoryExceededError:
            raise NeedsShuffleError from None
        if scan.unsettled.chunks or scan.unsettled.sealed:
            raise NeedsShuffleError
        stays = latest.ranks[~has(latest.ranks, EMPTY_BIT)]
        scan.dead.spare(stays >> ORDINAL_SHIFT)
        dead = scan.dead.by_segment()
        newer = NewKeys(latest.keys, hashes)
        return [ViewRange(one, newer.verdict) for one in old] + [
            view_range(one, rules, dead.get(one.number), scan.read[one.number]) for one in new
        ]


class NewKeys:
    """The keys that new entries have, each once."""

    def __init__(self, keys: pa.BinaryArray, hashes: KeyHash) -> None:
        self._hashes = hashes
        key_hashes = hashes(keys)
        order = np.argsort(key_hashes)
        self._sorted: Hashes = key_hashes[order]
        self._keys = keys.take(pa.array(order))
        self._last_bits = np.uint64((1 << min(MOST_BITS, max(LEAST_BITS, len(keys).bit_length() + BITS_MORE))) - 1)
        self._there = np.zeros(int(self._last_bits) + 1, np.bool_)
        """By the last bits of a hash whether any of the keys has them: tells most of the others in one look."""
        self._there[key_hashes & self._last_bits] = True

    def verdict(self, part: RoundMessages, _first: int) -> Flags:
        """Which messages of a view go. Raises `NeedsShuffleError`."""
        if part.chunks or part.sealed.any():
            raise NeedsShuffleError
        competes = part.competes & ~part.messages.empty
        rows = np.flatnonzero(competes)
        competes[rows[self.have(part.messages.key.take(pa.array(rows)))]] = False
        return ~(part.stays | competes)

    def have(self, keys: pa.BinaryArray) -> Flags:
        """For each key whether it is one of these: bool. Keys are compared whole (C12)."""
        matches = np.zeros(len(keys), np.bool_)
        if len(self._keys) == 0 or len(keys) == 0:
            return matches
        wanted = self._hashes(keys)
        left = np.flatnonzero(self._there[wanted & self._last_bits])
        places = np.zeros(len(keys), np.int64)
        places[left] = np.searchsorted(self._sorted, wanted[left])
        while len(left):  # as often as keys share a hash
            left = left[places[left] < len(self._sorted)]
            left = left[self._sorted[places[left]] == wanted[left]]
            same = pc.equal(keys.take(pa.array(left)), self._keys.take(pa.array(places[left])))
            agree = np.asarray(same, np.bool_)
            matches[left[agree]] = True
            left = left[~agree]
            places[left] += 1
        return matches
