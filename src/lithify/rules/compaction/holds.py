"""Which groups hold tombstones of a log, how many and since when, and which have missed some (C61).

steps      [ 3 tombstones )[ 2 )[ 4 )     expired 2 h, 1 h and 10 min ago, but for groups
payments        ▲ has read up to here     holds 9 at most, for 2 h
search                           ▲        holds 4 at most, for 10 min
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.model.groups.reads import GroupRead, LogReads
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState
from lithify.rules.compaction.tombstones import Expiry, expiry_of, missed_deletes


@dataclass(frozen=True, slots=True)
class Hold:
    """A group of `tombstone.hold.groups` and one log."""

    read: GroupRead
    tombstones: int
    """How many would have expired by `delete.retention.ms`, at most."""
    since_ms: int | None
    """When the first of them would have; None if it holds none."""
    until_ms: int | None
    """When the first of them is removed although the group has not read it; None if it holds none, or for ever."""
    missed_below: int | None
    """Deletes from its position on are gone that were below this offset; None if none are."""


def holds(log: LogState, settings: TopicSettings, reads: LogReads, now_ms: int) -> tuple[Hold, ...]:
    """What each group that is named holds at `now_ms`, even if it holds nothing."""
    expiry = expiry_of(settings)
    return tuple(_hold(log, replace(expiry, read_below=read.offset), read, now_ms) for read in reads.holding)


def holding(log: LogState, settings: TopicSettings, reads: LogReads, now_ms: int) -> tuple[str, ...]:
    """The groups without which a round would drop tombstones now."""
    return tuple(hold.read.group for hold in holds(log, settings, reads, now_ms) if hold.since_ms is not None)


def _hold(log: LogState, expiry: Expiry, read: GroupRead, now_ms: int) -> Hold:
    held = []
    for step in log.steps:
        at_ms, without_ms = expiry.at_ms(step), step.time_ms + expiry.retention_ms
        if step.tombstones > 0 and without_ms <= now_ms and (at_ms is None or now_ms < at_ms):
            held.append((step, without_ms, at_ms))
    missed = None
    if read.epoch is not None and read.offset > 0:
        missed = missed_deletes(log, read.offset, read.epoch, compacted=True)
    return Hold(
        read,
        tombstones=sum(step.tombstones for step, _, _ in held),
        since_ms=held[0][1] if held else None,
        until_ms=held[0][2] if held else None,
        missed_below=None if missed is None else missed.below,
    )
