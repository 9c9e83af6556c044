"""When records were committed, for `min.compaction.lag.from=commit` (C14).

    appends     |  9:00 | 9:01 | 9:02 |   ...   | 9:58 | 9:59 |      lag 8 h, parts of 1 h
    committed                                                (E, 9:59)
                 ... an hour later                           (E, 9:59) (E', 10:40)

A log keeps a few pairs (end offset, time of the commit) for its dirty records. Commits of one part of the lag
are one entry, with the time of the last: a record waits longer by that part at most, never shorter.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.model.log import CommittedEnd, LogState
from lithify.model.settings.topic_settings import TopicSettings

PARTS = 8
"""The number of parts of a lag."""

ENTRIES_KEPT = 32
"""The most entries of one log, if its lag was raised. Beyond it the two oldest become the later of them."""

LONG_AGO_MS = -(2**63)

Committed = tuple[CommittedEnd, ...]


def committed_ms(committed: Committed, end_offset: int) -> int:
    """When records below `end_offset` were committed at the latest; long ago if that is unknown."""
    return next((entry.time_ms for entry in committed if entry.end_offset >= end_offset), LONG_AGO_MS)


def committed_after(log: LogState, settings: TopicSettings, now_ms: int) -> Committed:
    """The entries of a log whose new state is committed now."""
    lag_ms = settings.min_compaction_lag_ms
    if settings.min_compaction_lag_from != "commit" or lag_ms <= 0:
        return ()
    known = [c for c in _ended(log.committed, log.log_end_offset) if c.end_offset > log.first_dirty_offset]
    old = [entry for entry in known if entry.time_ms + lag_ms <= now_ms]
    kept = [*old[-1:], *known[len(old) :]]
    if log.log_end_offset > (kept[-1].end_offset if kept else log.first_dirty_offset):
        time_ms = max(now_ms, kept[-1].time_ms) if kept else now_ms
        part_ms = max(1, lag_ms // PARTS)
        if kept and kept[-1].time_ms // part_ms == time_ms // part_ms:
            kept.pop()
        kept.append(CommittedEnd(log.log_end_offset, time_ms))
    return tuple(kept[-ENTRIES_KEPT:])


def _ended(committed: Committed, end_offset: int) -> Committed:
    """The entries of a log truncated to that end: of the entries above it only the first counts."""
    below = tuple(entry for entry in committed if entry.end_offset < end_offset)
    above = committed[len(below) :]
    return (*below, replace(above[0], end_offset=end_offset)) if above else below
