"""Which deletes rounds have dropped, and which readers may have missed them (C49).

    [0 ──── P ──────── below ──────────── log end)         a round dropped expired deletes below `below`
            └ a reader's position, of an earlier epoch:    some of those deletes may have been at or above P

A round stores the epoch that its commit begins and the offset below which it dropped deletes; a reader
stores the log's epoch with every position. So the check needs no clock, and no setting
that may have been changed since. An entry with a higher offset makes all earlier ones redundant.
"""

from __future__ import annotations

from lithify.model.log import DroppedDeletes, LogState

DROPS_KEPT = 8
"""The most entries of one log. Beyond it the two oldest become one with the higher offset of both."""

Drops = tuple[DroppedDeletes, ...]


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
    kept = [d for d in drops if d.below > new.below or (new.of_view and not d.of_view)]
    kept.append(new)
    if len(kept) > DROPS_KEPT:
        first, second, *rest = kept
        both = DroppedDeletes(second.epoch, max(first.below, second.below), first.of_view and second.of_view)
        kept = [both, *rest]
    return tuple(kept)


def without_view(drops: Drops) -> Drops:
    """The entries once the view is dropped: the backlog has every delete that the view had lost."""
    return tuple(drop for drop in drops if not drop.of_view)
