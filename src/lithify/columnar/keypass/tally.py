"""The counts of a key pass: a fixed set of numbers, for any number of records (C38)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lithify.columnar.keys.ranks import (
    EXPIRED_BIT,
    PAST_BIT,
    STEP_MASK,
    TOMBSTONE_BIT,
    UNORDERED_BIT,
    Flags,
    has,
    tombstones_by_step,
)
from lithify.columnar.segment.positions import Integers


@dataclass(slots=True)
class Tally:
    """Counts of a pass, in records unless stated otherwise. Those of parts can be added."""

    below_start: int = 0
    no_key: int = 0
    keyless_kept: int = 0
    keyless_expired: int = 0
    dirty_keyed: int = 0
    """Records of the dirty part to compare, over all hash ranges."""
    waiting_keyed: int = 0
    """The same above the horizon."""
    dirty_tombstones: int = 0
    dirty_unordered: int = 0
    compared: int = 0
    """Records of the dirty part that were compared."""
    asked: int = 0
    """Records above the horizon that were compared with expired tombstones (C20)."""
    winners: int = 0
    """Of the dirty part, like those below up to `held_winners`."""
    winning_tombstones: int = 0
    winning_unordered: int = 0
    expired_winners: int = 0
    past_winners: int = 0
    held_winners: int = 0
    clean_superseded: int = 0
    clean_unordered: int = 0
    """Superseded tombstones without an order."""
    clean_expired: int = 0
    clean_past: int = 0
    clean_held: int = 0
    clean_tombstones_lost: Integers = field(default_factory=lambda: np.zeros(STEP_MASK + 1, np.int64))
    """By tombstone step: int64, of length `STEP_MASK + 1`."""
    bytes_read: int = 0

    def add(self, other: Tally) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def win(self, ranks: Integers, held: Flags) -> Flags:
        """Counts dirty winners and returns which of them stay: bool, as long as `ranks`. `held`: kept by C20."""
        expired, past = has(ranks, EXPIRED_BIT), has(ranks, PAST_BIT)
        self.winners += len(ranks)
        self.winning_tombstones += _count(has(ranks, TOMBSTONE_BIT))
        self.winning_unordered += _count(has(ranks, UNORDERED_BIT))
        self.expired_winners += _count(expired & ~held)
        self.held_winners += _count(expired & held)
        self.past_winners += _count(past)
        return ~(past | expired & ~held)

    def judge_clean(self, ranks: Integers, superseded: Flags, held: Flags) -> Flags:
        """Counts clean records that may be dropped and returns which of them are: bool, as long as `ranks`."""
        expired, past = has(ranks, EXPIRED_BIT) & ~superseded, has(ranks, PAST_BIT) & ~superseded
        goes = superseded | past | expired & ~held
        self.clean_superseded += _count(superseded)
        self.clean_unordered += _count(superseded & has(ranks, UNORDERED_BIT))
        self.clean_expired += _count(expired & ~held)
        self.clean_held += _count(expired & held)
        self.clean_past += _count(past)
        self.clean_tombstones_lost += tombstones_by_step(ranks[goes])
        return goes


def _count(flags: Flags) -> int:
    return int(np.count_nonzero(flags))
