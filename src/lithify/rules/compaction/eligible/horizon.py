"""The compaction horizon: up to where a round may touch a log (C14, C15).

    segments   [0..9] [10..19] [20..29] [30..39]        H = 20: the third segment is
    max ts      old     old     young     old           the first that is too young

Only segments from the first dirty offset on are checked; there is no active segment. For
`min.compaction.lag.from=commit` a log keeps a few pairs (end offset, time of the commit) for its dirty records:

    appends     |  9:00 | 9:01 | 9:02 |   ...   | 9:58 | 9:59 |      lag 8 h, parts of 1 h
    committed                                                (E, 9:59)
                 ... an hour later                           (E, 9:59) (E', 10:40)

Commits of one part of the lag are one entry, with the time of the last: a record waits longer by that part at
most, never shorter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import CommittedEnd, LogState

LIMITED_BY_END = "log end"
LIMITED_BY_AGE = "min.compaction.lag.ms"
LIMITED_BY_BYTES = "min.compaction.lag.bytes"

LAG_PARTS = 8
"""The number of parts of a lag."""

COMMITTED_KEPT = 32
"""The most entries of one log, if its lag was raised. Beyond it the two oldest become the later of them."""

LONG_AGO_MS = -(2**63)

Committed = tuple[CommittedEnd, ...]


@dataclass(frozen=True, slots=True)
class Horizon:
    """The exclusive end of what a round may touch, and what limits it.

    `held_by` is the path of the segment that is too young, if one is.
    """

    offset: int
    limited_by: str
    held_by: str | None = None


def compaction_horizon(state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int) -> Horizon:
    """H of one log, whose `segments` are given in offset order (C14).

    The smallest of the limits counts; of equal ones the first that is named here: log end, age,
    bytes. Never below the first dirty offset.
    """
    limits = [
        Horizon(state.log_end_offset, LIMITED_BY_END),
        *_age_limit(state, segments, settings, now_ms),
        *_bytes_limit(segments, settings),
    ]
    lowest = min(limits, key=lambda limit: limit.offset)
    if lowest.offset < state.first_dirty_offset:
        return Horizon(state.first_dirty_offset, lowest.limited_by, lowest.held_by)
    return lowest


def _age_limit(state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int) -> list[Horizon]:
    if settings.min_compaction_lag_ms <= 0:
        return []
    youngest_allowed_ms = now_ms - settings.min_compaction_lag_ms  # age equal to the lag is old enough
    for segment in segments:
        since_ms = max(segment.max_timestamp_ms, committed_ms(state.committed, segment.end_offset))
        if segment.end_offset > state.first_dirty_offset and since_ms > youngest_allowed_ms:
            return [Horizon(segment.base_offset, LIMITED_BY_AGE, segment.path)]
    return []


def _bytes_limit(segments: tuple[Segment, ...], settings: TopicSettings) -> list[Horizon]:
    lag = settings.min_compaction_lag_bytes
    if lag <= 0:
        return []
    held = 0
    oldest = None
    for segment in reversed(segments):
        held += segment.size_bytes
        if held > lag:
            break
        oldest = segment
    return [Horizon(oldest.base_offset, LIMITED_BY_BYTES)] if oldest else []


def committed_ms(committed: Committed, end_offset: int) -> int:
    """When records below `end_offset` were committed at the latest; long ago if that is unknown."""
    return next((entry.time_ms for entry in committed if entry.end_offset >= end_offset), LONG_AGO_MS)


def committed_after(log: LogState, settings: TopicSettings, now_ms: int) -> Committed:
    """The entries of a log whose new state is committed now.

    Of the entries that are old enough, the first one is kept until D has passed it, and the last one. The last alone
    would not do: it changes with every part of the lag, so a cleaner whose clock is behind would never find it old
    enough.
    """
    lag_ms = settings.min_compaction_lag_ms
    if settings.min_compaction_lag_from != "commit" or lag_ms <= 0:
        return ()
    known = [c for c in _ended(log.committed, log.log_end_offset) if c.end_offset > log.first_dirty_offset]
    old = [entry for entry in known if entry.time_ms + lag_ms <= now_ms]
    kept = [*old[:1], *old[1:][-1:], *known[len(old) :]]
    if log.log_end_offset > (kept[-1].end_offset if kept else log.first_dirty_offset):
        time_ms = max(now_ms, kept[-1].time_ms) if kept else now_ms
        part_ms = max(1, lag_ms // LAG_PARTS)
        if kept and kept[-1].time_ms // part_ms == time_ms // part_ms:
            kept.pop()
        kept.append(CommittedEnd(log.log_end_offset, time_ms))
    return tuple(kept[-COMMITTED_KEPT:])


def _ended(committed: Committed, end_offset: int) -> Committed:
    """The entries of a log truncated to that end: of the entries above it only the first counts."""
    below = tuple(entry for entry in committed if entry.end_offset < end_offset)
    above = committed[len(below) :]
    return (*below, replace(above[0], end_offset=end_offset)) if above else below
