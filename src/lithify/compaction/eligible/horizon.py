"""The compaction horizon: up to where a round may touch a log (C14, C15).

    segments   [0..9] [10..19] [20..29] [30..39]        H = 20: the third segment is
    max ts      old     old     young     old           the first that is too young

Only segments from the first dirty offset on are checked; there is no active segment.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.compaction.eligible.commit_times import committed_ms
from lithify.model.log import LogState
from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings

LIMITED_BY_END = "log end"
LIMITED_BY_AGE = "min.compaction.lag.ms"
LIMITED_BY_BYTES = "min.compaction.lag.bytes"


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
