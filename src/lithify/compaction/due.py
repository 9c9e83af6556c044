"""When a log is due for a round or for retention, why or why not, and in which order (C21, C27 to C29)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from lithify.compaction.horizon import Horizon, compaction_horizon
from lithify.compaction.retention import expired_bytes, gone_segments, past_retention
from lithify.compaction.steps import next_expiry_ms
from lithify.model.log import LogState
from lithify.model.segment import Segment, volume_of
from lithify.model.setting_table import NO_LIMIT
from lithify.model.settings import TopicSettings
from lithify.model.units import format_time


@dataclass(frozen=True, slots=True)
class Dirtiness:
    """Compressed bytes that rounds have left, and those from D up to the horizon (C27)."""

    clean_bytes: int
    dirty_bytes: int
    oldest_dirty_timestamp_ms: int | None

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


@dataclass(frozen=True, slots=True)
class Due:
    """Whether a log is due, with a reason for people."""

    due: bool
    reason: str
    due_at_ms: int | None = None
    """When it becomes due by the clock alone, if it will; in the past if it has."""
    overdue_ms: int = 0
    """How far it is past `max.compaction.lag.ms` (C29)."""


def dirtiness(state: LogState, segments: tuple[Segment, ...], horizon: Horizon) -> Dirtiness:
    """What is clean and dirty below the horizon; bytes at or above it count on neither side."""
    clean = [s for s in segments if s.end_offset <= state.first_dirty_offset]
    dirty = [s for s in segments if s.end_offset > state.first_dirty_offset and s.end_offset <= horizon.offset]
    return Dirtiness(
        clean_bytes=sum(s.size_bytes for s in clean) if state.view is None else state.view.volume.size_bytes,
        dirty_bytes=sum(s.size_bytes for s in dirty),
        oldest_dirty_timestamp_ms=min((s.min_timestamp_ms for s in dirty), default=None),
    )


def due(state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int) -> Due:
    """Whether the log, whose `segments` are in offset order, is due at `now_ms`, or when it will be."""
    found = _due_at(state, segments, settings, now_ms)
    if found.due:
        return found
    # What the clock brings about, it brings for good: the first time at which the log is due is
    # found by halving the times at which anything can change.
    times = sorted({t for t in _turning_points(state, segments, settings) if t > now_ms})
    first = bisect_left(times, True, key=lambda time_ms: _due_at(state, segments, settings, time_ms).due)
    return found if first == len(times) else Due(False, found.reason, times[first])


def priority(verdict: Due, dirt: Dirtiness) -> tuple[int, float]:
    """Sorts due logs, the first one lowest: most overdue first, then by dirty ratio (C29)."""
    return -verdict.overdue_ms, -dirt.ratio


def next_tombstone_expiry_ms(state: LogState, horizon: Horizon, settings: TopicSettings) -> int | None:
    """When the next tombstone may go; those that wait for the horizon to move are passed over (C20, C21)."""
    held = state.held.below if state.held is not None and horizon.offset <= state.held.horizon else 0
    return next_expiry_ms(tuple(s for s in state.steps if s.end_offset > held), settings.delete_retention_ms)


def _due_at(state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int) -> Due:
    """As `due`, without a look ahead; deadlines go before ratios."""
    if settings.deletes:
        gone = gone_segments(state, segments, settings, now_ms)
        if gone:
            return Due(True, f"{len(gone)} segments ({volume_of(gone).size_bytes} bytes) are past retention", now_ms)
    if not settings.compacts:
        return Due(False, "nothing is past retention")
    horizon = compaction_horizon(state, segments, settings, now_ms)
    dirt = dirtiness(state, segments, horizon)
    deadline_ms = _deadline_ms(dirt, settings)
    if deadline_ms is not None and deadline_ms <= now_ms:
        since = f"dirty for longer than max.compaction.lag.ms, since {format_time(deadline_ms)}"
        return Due(True, since, deadline_ms, overdue_ms=now_ms - deadline_ms)
    reason = next(_reasons(state, segments, settings, now_ms, horizon), None)
    if reason is not None:
        return reason
    if dirt.dirty_bytes == 0:
        return Due(False, "nothing dirty below the horizon")
    return Due(False, f"dirty ratio {dirt.ratio:.2f} <= {settings.min_cleanable_dirty_ratio:g}")


def _reasons(
    state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int, horizon: Horizon
) -> Iterator[Due]:
    """Why a log without a deadline is due (C28)."""
    dirt = dirtiness(state, segments, horizon)
    ratio, threshold = settings.min_cleanable_dirty_ratio, settings.compaction_threshold_bytes
    if dirt.ratio > ratio:
        yield Due(True, f"dirty ratio {dirt.ratio:.2f} > {ratio:g}")
    if threshold != NO_LIMIT and dirt.dirty_bytes > threshold:
        yield Due(True, f"{dirt.dirty_bytes} dirty bytes > compaction.threshold.bytes={threshold}")
    expiry_ms = next_tombstone_expiry_ms(state, horizon, settings)
    if expiry_ms is not None and expiry_ms <= now_ms:
        yield Due(True, f"tombstones have expired, since {format_time(expiry_ms)}", expiry_ms)
    if state.owed:
        yield Due(True, state.owed)
    total = volume_of(segments).size_bytes
    expired = expired_bytes(segments, horizon.offset, settings, now_ms)
    if expired > ratio * total:
        yield Due(True, f"some {expired} bytes in {total} are single records past retention")
    if _trim_waits(state, segments, settings, now_ms) and horizon.offset > state.first_dirty_offset:
        yield Due(True, "segments past retention wait for a round: the view does not have them yet")


def _trim_waits(state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int) -> bool:
    """Whether the oldest segment is past retention and still dirty, so that it must not go (C33)."""
    if not settings.side_by_side or not segments:
        return False
    oldest, rest = segments[0], volume_of(segments[1:]).size_bytes
    return oldest.end_offset > state.first_dirty_offset and past_retention(oldest, rest, settings, now_ms)


def _turning_points(state: LogState, segments: tuple[Segment, ...], settings: TopicSettings) -> Iterator[int]:
    """Times at which the clock alone can make a log due."""
    dirty = [s for s in segments if s.end_offset > state.first_dirty_offset]
    if settings.compacts:
        yield from (step.time_ms + settings.delete_retention_ms for step in state.steps if step.tombstones > 0)
        yield from (s.max_timestamp_ms + settings.min_compaction_lag_ms for s in dirty)
        if settings.max_compaction_lag_ms != NO_LIMIT:
            yield from (s.min_timestamp_ms + settings.max_compaction_lag_ms + 1 for s in dirty)
    if settings.deletes and settings.retention_ms != NO_LIMIT:
        yield from (s.max_timestamp_ms + settings.retention_ms + 1 for s in segments)


def _deadline_ms(dirt: Dirtiness, settings: TopicSettings) -> int | None:
    if settings.max_compaction_lag_ms == NO_LIMIT or dirt.oldest_dirty_timestamp_ms is None:
        return None
    return dirt.oldest_dirty_timestamp_ms + settings.max_compaction_lag_ms + 1  # older than, not as old as
