"""The counts of a key pass: a fixed set of numbers, for any number of records (C38); their sum is checked.

Each record of the dirty part must have been compared in exactly one hash range, and each record above the
horizon, and each chunk, exactly once with the expired tombstones. Workers that hash differently, or a lost part,
fail this check before anything is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from lithify.columnar.keypass.ranks import (
    EXPIRED_BIT,
    PAST_BIT,
    STEP_MASK,
    TOMBSTONE_BIT,
    UNORDERED_BIT,
    Flags,
    has,
    tombstones_by_step,
)
from lithify.columnar.segment.dead_records import Integers
from lithify.errors import EngineError, LithifyError
from lithify.rules.compaction.outcome import LogFindings
from lithify.rules.compaction.planner import LogPlan
from lithify.rules.compaction.survivor_rules import Cause


@dataclass(slots=True)
class Tally:
    """Counts of a pass, in records unless stated otherwise. The counts of parts can be added."""

    below_start: int = 0
    no_key: int = 0
    keyless_kept: int = 0
    keyless_expired: int = 0
    dirty_keyed: int = 0
    """Records of the dirty part to compare, over all hash ranges."""
    holding_keyed: int = 0
    """The same above the horizon, and chunks below it with a key."""
    dirty_tombstones: int = 0
    dirty_unordered: int = 0
    compared: int = 0
    """Records of the dirty part that were compared."""
    asked: int = 0
    """Records above the horizon, and chunks, that were compared with expired tombstones (C20, C53)."""
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
    held_by_chunks: int = 0
    """Of the held tombstones of both parts (C53)."""
    bytes_read: int = 0

    def add(self, other: Tally) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def win(self, ranks: Integers, held: Flags) -> Flags:
        """Counts dirty winners and returns which of them remain: bool, as long as `ranks`. `held`: by C20 or C53."""
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


def log_findings(
    plan: LogPlan, tallies: Iterable[Tally | LithifyError], changes: Mapping[str, int]
) -> LogFindings | LithifyError:
    """The findings of one log, from the tallies of its parts and the `DeadPositions.change` by segment path.

    Returns, not raises, the first error among `tallies`, or an `EngineError` for inconsistent counts.
    """
    total = Tally()
    for tally in tallies:
        if isinstance(tally, LithifyError):
            return tally
        total.add(tally)
    keyed, compared = total.dirty_keyed + total.holding_keyed, total.compared + total.asked
    if (total.compared, total.asked) != (total.dirty_keyed, total.holding_keyed):
        return EngineError(
            f"partition {plan.partition}: {keyed} records have keys, but {compared} were compared",
            hint="check that all workers run the same version of Lithify; the log is unchanged",
        )
    superseded = total.compared - total.winners + total.clean_superseded
    losers = {
        Cause.BELOW_START: total.below_start,
        Cause.NO_KEY: total.no_key,
        Cause.SUPERSEDED: superseded,
        Cause.EXPIRED_TOMBSTONE: total.expired_winners + total.clean_expired,
        Cause.PAST_RETENTION: total.past_winners + total.clean_past + total.keyless_expired,
    }
    before = {s.path: s.records for s in plan.looked_at} | {s.path: 0 for s in plan.dirty}
    steps = len(plan.base.steps)
    return LogFindings(
        survivors={path: live - changes.get(path, 0) for path, live in before.items()},
        losers={cause: count for cause, count in losers.items() if count},
        keyless_kept=total.keyless_kept,
        keyless_expired=total.keyless_expired,
        dirty_tombstones=total.dirty_tombstones,
        dirty_tombstones_kept=total.winning_tombstones - total.expired_winners,
        clean_tombstones_lost=tuple(int(n) for n in total.clean_tombstones_lost[:steps]),
        clean_tombstones_held=total.clean_held,
        tombstones_held=total.held_winners + total.clean_held,
        tombstones_held_by_chunks=total.held_by_chunks,
        tombstones_unversioned=total.dirty_unordered - total.winning_unordered + total.clean_unordered,
        bytes_read=total.bytes_read,
    )
