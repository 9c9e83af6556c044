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

from lithify.columnar.key_hash import HashRange, KeyHash, half_hashes
from lithify.columnar.keypass.held_rows import Rows
from lithify.columnar.keypass.key_comparison import KeyComparison
from lithify.columnar.keypass.key_source import MemoryExceededError
from lithify.columnar.keypass.keys.key_table import KeyTable
from lithify.columnar.keypass.ranks import ORDINAL_SHIFT, has
from lithify.columnar.segment.dead_records import Flags
from lithify.pulsar.rounds.entry_ranks import EMPTY_BIT
from lithify.pulsar.rounds.entry_reader import EntryReader
from lithify.pulsar.rounds.entry_scan import EntryScan, NumberedRange
from lithify.pulsar.rounds.round_messages import RoundMessages, RoundRules
from lithify.pulsar.rounds.view_writing import ViewRange, view_range

WHOLE = HashRange(0, 1)


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

        def acquire_alone(size_bytes: int) -> None:
            if scan.unsettled.chunks or scan.unsettled.sealed:  # of which there may be many more
                raise NeedsShuffleError
            acquire(size_bytes)

        scan = EntryScan(reader, new, rules, acquire_alone)
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
        newer = NewKeys(latest, hashes)
        return [ViewRange(one, newer.verdict) for one in old] + [
            view_range(one, rules, dead.get(one.number), scan.read[one.number]) for one in new
        ]


class NewKeys:
    """The keys that new entries have."""

    def __init__(self, latest: Rows, hashes: KeyHash) -> None:
        self._hashes = hashes
        self._table = KeyTable(latest.keys, latest.halves)

    def verdict(self, part: RoundMessages, _first: int) -> Flags:
        """Which messages of a view are removed. Raises `NeedsShuffleError`."""
        if part.chunks or part.sealed.any():
            raise NeedsShuffleError
        competes = part.competes & ~part.messages.empty
        rows = np.flatnonzero(competes)
        competes[rows[self.have(part.messages.key.take(pa.array(rows)))]] = False
        return ~(part.stays | competes)

    def have(self, keys: pa.BinaryArray) -> Flags:
        """For each key whether it is one of these: bool. Keys are compared whole (C12)."""
        return self._table.find(keys, half_hashes(self._hashes, keys)) >= 0
