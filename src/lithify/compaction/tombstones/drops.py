"""When deletes went, and who may have missed them (C49).

    [0 ──── P ──────── below ──────────── log end)      a round took expired deletes below `below`
            └ a reader's place, of an epoch before it:  some of those deletes may have been at or above P

A round writes down the epoch that its commit begins and the offset below which it took deletes; a reader
keeps the epoch of the log with every place that it stores. So no clock is compared, and no setting
that may have been changed since. Later rounds reach further up, which makes one entry enough: an
entry that a later one reaches over says nothing any more.
"""

from __future__ import annotations

from lithify.model.log import DroppedDeletes, LogState

DROPS_KEPT = 8
"""Entries that one log may have. Beyond it the two oldest become one that reaches as far as either."""

Drops = tuple[DroppedDeletes, ...]


def missed_deletes(log: LogState, offset: int, epoch: int, *, compacted: bool) -> DroppedDeletes | None:
    """What a reader may have missed who took everything below `offset` when the log was in `epoch`; None: nothing.

    `log` is the newest state, of the same topic and not truncated below `offset`, which is not below the
    log start. `compacted` says which data is read: deletes that a view had are missed by those who read
    the view. The answer is never None where a delete was missed. It is exact up to the end of the
    segment, or of the tombstone step, in which the last dropped delete stood.
    """
    missed = (d for d in log.dropped if d.epoch > epoch and d.below > offset and (compacted or not d.of_view))
    return next(missed, None)


def with_drop(drops: Drops, new: DroppedDeletes) -> Drops:
    """With one entry more, the latest, and without those that it reaches over."""
    kept = [d for d in drops if d.below > new.below or (new.of_view and not d.of_view)]
    kept.append(new)
    if len(kept) > DROPS_KEPT:
        first, second, *rest = kept
        both = DroppedDeletes(second.epoch, max(first.below, second.below), first.of_view and second.of_view)
        kept = [both, *rest]
    return tuple(kept)


def without_view(drops: Drops) -> Drops:
    """What is left to say once the view is gone: the backlog has every delete that the view had lost."""
    return tuple(drop for drop in drops if not drop.of_view)
