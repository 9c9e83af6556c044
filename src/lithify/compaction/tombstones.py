"""Since when the tombstones of a log are covered (C18, C19), and which deletes rounds have dropped (C49).

A step (end offset, time) says: everything below the end was covered by a round at that time or
before. A log's steps ascend in both, so the first step whose end is above o gives the age of a
tombstone at offset o, and the tombstones that may be dropped are always those below one offset.

    offset   0 ......... 40 ......... 90 ......... 120
    step       10:00        11:00         12:30          expired at 11:15, retention 1 h: below 40

A round stores the epoch that its commit begins and the offset below which it dropped deletes; a reader stores the
log's epoch with every position. So whether it missed one needs no clock, and no setting that may have been changed
since. An entry with a higher offset makes all earlier ones redundant.

    [0 ──── P ──────── below ──────────── log end)         a round dropped expired deletes below `below`
            └ a reader's position, of an earlier epoch:    some of those deletes may have been at or above P
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from lithify.model.log import LogState, TombstoneStep
from lithify.model.missed import DroppedDeletes

STEPS_KEPT = 64
"""The most steps of one log. Beyond it the two closest in time become one, the later."""

DROPS_KEPT = 8
"""The most dropped deletes of one log. Beyond it the two oldest become one with the higher offset of both."""

Steps = tuple[TombstoneStep, ...]
Drops = tuple[DroppedDeletes, ...]


def tombstones_expire_below(steps: Steps, *, horizon: int, retention_ms: int, now_ms: int) -> int:
    """A round up to `horizon` drops winning tombstones below this offset (C18); 0 if none.

    Tombstones start to age in the first round that covers them. With a retention of 0 that round
    drops them all, at any time of the clock.
    """
    if retention_ms == 0:
        return horizon
    return max((s.end_offset for s in steps if s.time_ms + retention_ms <= now_ms), default=0)


def with_round(steps: Steps, *, horizon: int, now_ms: int, tombstones: int) -> Steps:
    """The steps after a round that moved D to `horizon`; time never goes back (C18)."""
    time_ms = max(now_ms, steps[-1].time_ms) if steps else now_ms
    return (*steps, TombstoneStep(horizon, time_ms, tombstones))


def folded(steps: Steps, *, log_start: int, retention_ms: int, now_ms: int) -> Steps:
    """The steps merged into fewer: a tombstone's time may become later, never unknown (C19).

    - steps with an end at or below the log start are removed;
    - expired ones become the newest of them;
    - a step without a tombstone left is removed, as the next one covers it;
    - of more than `STEPS_KEPT`, the two closest in time become the later.
    """
    kept = [s for s in steps if s.end_offset > log_start]
    expired = [s for s in kept if s.time_ms + retention_ms <= now_ms]
    if expired:
        kept = [replace(expired[-1], tombstones=sum(s.tombstones for s in expired)), *kept[len(expired) :]]
    kept = [s for s in kept[:-1] if s.tombstones > 0] + kept[-1:]
    while len(kept) > STEPS_KEPT:
        gaps = [later.time_ms - earlier.time_ms for earlier, later in pairwise(kept)]
        closest = gaps.index(min(gaps))
        earlier, later = kept[closest : closest + 2]
        kept[closest : closest + 2] = [replace(later, tombstones=earlier.tombstones + later.tombstones)]
    return tuple(kept)


def next_expiry_ms(steps: Steps, retention_ms: int) -> int | None:
    """When the next tombstones expire, in epoch ms; None if there are none (C21)."""
    return next((s.time_ms + retention_ms for s in steps if s.tombstones > 0), None)


def missed_deletes(log: LogState, offset: int, epoch: int, *, compacted: bool) -> DroppedDeletes | None:
    """What a reader at `offset` may have missed that read the log up to there in `epoch`; None: nothing.

    `log` is the newest state, of the same topic and not truncated below `offset`, which is not below the
    log start. `compacted` says which data is read: only readers of the view miss deletes that the view
    had. The result is never None where a delete was missed. It is exact up to the end of the
    segment, or of the tombstone step, that had the last dropped delete.
    """
    missed = (d for d in log.dropped if d.epoch > epoch and d.below > offset and (compacted or not d.of_view))
    return next(missed, None)


def with_drop(drops: Drops, new: DroppedDeletes) -> Drops:
    """`dropped` with a latest entry, and without those that it makes redundant."""
    kept = [d for d in drops if d.below > new.below or _outlives(d, new)]
    kept.append(new)
    if len(kept) > DROPS_KEPT:
        first, second, *rest = kept
        both = DroppedDeletes(
            second.epoch,
            max(first.below, second.below),
            of_view=first.of_view and second.of_view,
            restored=first.restored or second.restored,
        )
        kept = [both, *rest]
    return tuple(kept)


def without_view(drops: Drops) -> Drops:
    """The entries once the view is dropped: the backlog has every delete that the view had lost.

    It has the values that truncations restored as well, but below the positions of readers of the view.
    """
    return tuple(drop for drop in drops if drop.restored or not drop.of_view)


def _outlives(drop: DroppedDeletes, new: DroppedDeletes) -> bool:
    """Whether an entry is about more readers than a later one, now or once the view is dropped."""
    return new.of_view and (not drop.of_view or (drop.restored and not new.restored))
