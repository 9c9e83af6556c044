"""Since when the tombstones of a log are covered (C18, C19, C61), and which deletes rounds have dropped (C49).

A step (end offset, time) means: everything below the end was covered by a round at that time or
before. A log's steps ascend in both. So the first step whose end is above o gives the age of a
tombstone at offset o, and the tombstones that may be dropped are always all below one offset.

    offset   0 ......... 40 ......... 90 ......... 120
    step       10:00        11:00         12:30          expired at 11:15, retention 1 h: below 40
    groups                       read below 60           expired at 14:00, held for 1 d at most: below 40

A round stores the epoch that its commit begins and the offset below which it dropped deletes; a reader stores the
log's epoch with every position. So whether it missed one needs no clock, and no setting that may have been changed
since. An entry with a higher offset makes all earlier ones redundant.

    [0 ──── P ──────── below ──────────── log end)         a round dropped expired deletes below `below`
            └ a reader's position, of an earlier epoch:    some of those deletes may have been at or above P
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from lithify.model.groups.reads import EVERYTHING, NONE_NAMED, LogReads
from lithify.model.missed import DroppedDeletes
from lithify.model.settings.table import NO_LIMIT
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState, TombstoneStep

STEPS_KEPT = 64
"""The most steps of one log. Beyond it, the steps within one stretch of time become the latest of them."""

DROPS_KEPT = 8
"""The most dropped deletes of one log. Beyond it the two oldest of a kind become one with the higher offset of both."""

FOREVER_MS = 2**62
"""A retention that is never over."""

Steps = tuple[TombstoneStep, ...]
Drops = tuple[DroppedDeletes, ...]


@dataclass(frozen=True, slots=True)
class Expiry:
    """How long a step's tombstones remain: `retention_ms`, or `held_ms` unless all groups have read the whole step.

    `held_ms` is not shorter; None is for ever.
    """

    retention_ms: int
    held_ms: int | None = None
    read_below: int = EVERYTHING

    def at_ms(self, step: TombstoneStep) -> int | None:
        """When the step expires, in epoch ms; None while groups hold it for ever. Earlier steps expire no later."""
        kept_ms = self.retention_ms if step.end_offset <= self.read_below else self.held_ms
        return None if kept_ms is None else step.time_ms + kept_ms


def expiry_of(settings: TopicSettings, reads: LogReads = NONE_NAMED) -> Expiry:
    """The expiry of a log that groups have read so far (C18, C61)."""
    return Expiry(settings.delete_retention_ms, held_at_most_ms(settings), reads.tombstones_below)


def keeping_tombstones(settings: TopicSettings) -> TopicSettings:
    """The same settings, under which a round drops no tombstone as expired."""
    return replace(settings, delete_retention_ms=FOREVER_MS)


def held_at_most_ms(settings: TopicSettings) -> int | None:
    """How long after it was covered a tombstone is removed, whatever groups have read; None is never (C61)."""
    retention_ms, held_ms = settings.delete_retention_ms, settings.tombstone_hold_max_ms
    if not settings.holding_groups:
        return retention_ms
    return None if held_ms == NO_LIMIT else max(retention_ms, held_ms)


def tombstones_expire_below(steps: Steps, *, horizon: int, expiry: Expiry, now_ms: int) -> int:
    """A round up to `horizon` drops winning tombstones below this offset (C18, C61); 0 if none.

    Tombstones start to age in the first round that covers them. With a retention of 0 that round drops those
    that all groups have read, at any time of the clock, and all where groups hold them for no time (C41).
    """
    if expiry.retention_ms > 0:
        return max((s.end_offset for s in steps if _is_past(expiry.at_ms(s), now_ms)), default=0)
    if expiry.read_below >= horizon or expiry.held_ms == 0:
        return horizon
    read = (s.end_offset for s in steps if s.end_offset <= expiry.read_below or _is_past(expiry.at_ms(s), now_ms))
    return max(read, default=0)


def with_round(steps: Steps, *, horizon: int, now_ms: int, tombstones: int) -> Steps:
    """The steps after a round that moved D to `horizon`; time never goes back (C18)."""
    time_ms = max(now_ms, steps[-1].time_ms) if steps else now_ms
    return (*steps, TombstoneStep(horizon, time_ms, tombstones))


def above(steps: Steps, log_start: int) -> Steps:
    """The steps that cover anything: those that end above the log start (C19)."""
    return tuple(step for step in steps if step.end_offset > log_start)


def folded(steps: Steps, *, log_start: int, held_ms: int | None, now_ms: int) -> Steps:
    """The steps merged into fewer: a tombstone's time may become later, never unknown (C19).

    - steps with an end at or below the log start are removed;
    - steps that nothing holds any longer, as `held_ms` is over, become the newest of them: if held ones were
      merged, groups would have to read further for each (C61);
    - a step without a tombstone left is removed, as the next one covers it;
    - if more than `STEPS_KEPT` remain, the steps within one stretch of time become the latest of them.
    """
    kept = [*above(steps, log_start)]
    expired = [s for s in kept if held_ms is not None and s.time_ms + held_ms <= now_ms]
    if expired:
        kept = [replace(expired[-1], tombstones=sum(s.tombstones for s in expired)), *kept[len(expired) :]]
    kept = [s for s in kept[:-1] if s.tombstones > 0] + kept[-1:]
    return _few(kept)


def _few(steps: list[TombstoneStep]) -> Steps:
    """At most `STEPS_KEPT` of these, which ascend: the steps within one stretch of time become the latest of them.

    Stretches have the shortest length that suffices, and begin at its multiples. Lengths are powers of 2, so
    every longer stretch consists of shorter ones. However often steps are merged, none becomes later than the
    end of one stretch, which is about a thirtieth of the time that all of them span. If the two closest in time
    were merged, the oldest step of a log with rounds at regular intervals would become later with each round, and
    its tombstones would never expire.
    """
    length_ms = 1
    while len(steps) > STEPS_KEPT:
        stretches = groupby(steps, key=lambda step: step.time_ms // length_ms)
        merged = [list(some) for _, some in stretches]
        steps = [replace(some[-1], tombstones=sum(s.tombstones for s in some)) for some in merged]
        length_ms *= 2
    return tuple(steps)


def next_expiry_ms(steps: Steps, expiry: Expiry) -> int | None:
    """When the next tombstones expire, in epoch ms; None if there are none, or while groups hold them (C21, C61)."""
    return next((expiry.at_ms(step) for step in steps if step.tombstones > 0), None)


def delete_retention_point(log: LogState) -> int:
    """The offset below which a reader of compacted data that starts now may lack deletes (C19, C49)."""
    return max([log.compacted_start, *(d.below for d in log.dropped if not d.restored)])


def missed_deletes(log: LogState, offset: int, epoch: int, *, compacted: bool) -> DroppedDeletes | None:
    """What a reader at `offset` may have missed that read the log up to there in `epoch`; None: nothing.

    `log` is the newest state, of the same topic and not truncated below `offset`, which is not below the
    log start. `compacted` says which data is read: only readers of the view miss deletes that the view
    had. The result is never None if a delete was missed. It is exact up to the end of the
    segment, or of the tombstone step, that had the last dropped delete.
    """
    missed = (d for d in log.dropped if d.epoch > epoch and d.below > offset and (compacted or not d.of_view))
    return next(missed, None)


def with_drop(drops: Drops, new: DroppedDeletes) -> Drops:
    """`dropped` with a latest entry, and without those that it makes redundant."""
    kept = [d for d in drops if d.below > new.below or _outlives(d, new)]
    kept.append(new)
    return tuple(kept) if len(kept) <= DROPS_KEPT else _one_fewer(kept)


def _one_fewer(drops: list[DroppedDeletes]) -> Drops:
    """Deletes that expired and values that truncations restored remain apart: reads as of a point need both (C69)."""
    expired, restored = ([d for d in drops if d.restored is kind] for kind in (False, True))
    first, second = (expired if len(expired) > 1 else restored)[:2]
    both = replace(second, below=max(first.below, second.below), of_view=first.of_view and second.of_view)
    return tuple(both if d is second else d for d in drops if d is not first)


def without_view(drops: Drops) -> Drops:
    """The entries once the view is dropped: the backlog has every delete that the view had lost.

    It has the values that truncations restored as well, but below the positions of readers of the view.
    """
    return tuple(drop for drop in drops if drop.restored or not drop.of_view)


def _is_past(time_ms: int | None, now_ms: int) -> bool:
    return time_ms is not None and time_ms <= now_ms


def _outlives(drop: DroppedDeletes, new: DroppedDeletes) -> bool:
    """Whether an entry is about more readers than a later one, now or once the view is dropped, or about deletes that
    are gone, where the later one is about values that are back."""
    if new.restored and not drop.restored:
        return True
    return new.of_view and (not drop.of_view or (drop.restored and not new.restored))
