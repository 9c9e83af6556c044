"""Whether somebody who took a log up to some place can go on from there (C7, C49).

    taken  [0 ───────────── place) ·  ·  ✗  · ·  log end      ✗ a delete that went unseen: what it deletes
                                                                was taken, and would stay for ever

Followers, readers that come back to a place, consumers of lake and Kafka, `publish` and streams of Spark
all ask here.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.compaction.tombstones.drops import missed_deletes
from lithify.model.cursor import Place
from lithify.model.log import LogState, TopicState


def why_lost(place: Place, state: TopicState, log: LogState, *, compacted: bool) -> str | None:
    """Why nobody can go on from a place in this version of the log; None if they can.

    `compacted` says which data is read on. What deletes are gone is known to the end of the segment in
    which the last of them stood: the answer may be a reason where nothing was missed, never the reverse.
    """
    offset = place.offset
    if state.identity != place.identity:
        return f"the topic was deleted and made again since it was read up to offset {offset}"
    if was_cut_below(log, place.generation, offset):
        return f"the log was truncated below offset {offset}, up to which it was read; it ends at {log.log_end_offset}"
    start = log.compacted_start if compacted else log.log_start_offset
    if offset < start:
        return f"the log starts at {start} now, behind offset {offset}, where this goes on"
    return why_deletes_missed(log, offset, place.epoch, compacted=compacted) or _by_time(place, state, log)


def why_deletes_missed(log: LogState, offset: int, epoch: int, *, compacted: bool) -> str | None:
    """Which deletes somebody has missed who took everything below `offset` in that epoch (C49).

    In an earlier state of the log, which somebody has put back, nobody can tell.
    """
    if log.epoch < epoch:  # it never goes back (C44)
        return f"the log is an earlier one than was read up to offset {offset}, such as a backup has it"
    missed = missed_deletes(log, offset, epoch, compacted=compacted)
    if missed is None or offset == 0:  # there nothing was taken yet
        return None
    return (
        f"rounds have removed deletes below offset {missed.below}, or a truncation has brought values back, since it "
        f"was read up to offset {offset}; they may be of keys that were read"
    )


def moved(place: Place, log: LogState, offset: int) -> Place:
    """A place that was not lost in this version of a log, further on in it."""
    there = replace(place, offset=offset, generation=log.generation)
    if missed_deletes(log, offset, place.epoch, compacted=True) is not None:
        return there  # some that are gone by now were read ahead of what was dealt with
    return replace(there, epoch=log.epoch, as_of_ms=None)


def was_cut_below(log: LogState, generation: int, position: int) -> bool:
    """Whether a truncation since the log was of that generation cut below a reader's position (C7)."""
    missed = log.generation - generation
    if missed > len(log.truncated):
        return True
    return missed > 0 and min(log.truncated[-missed:]) < position


def _by_time(place: Place, state: TopicState, log: LogState) -> str | None:
    """All that can be said of a place from before there were epochs."""
    if place.as_of_ms is None or log.last_round_ms is None or place.offset >= log.first_dirty_offset:
        return None
    if log.last_round_ms < place.as_of_ms + state.settings.delete_retention_ms:
        return None
    return (
        f"rounds may have removed deletes since it was read up to offset {place.offset}, as "
        f"delete.retention.ms={state.settings.delete_retention_ms} has passed"
    )
