"""How a log stands at one time: horizon, dirtiness, whether it is due and why (C14, C21, C27 to C29).

    state, segments, settings, now ─► Assessment ─┬─► cleaner: what to do, and when to look again
                                                  └─► `status`: of a topic, and of a catalog

A log whose state alone says that it is not due gets an `Assessment` as well (`rules/schedule/idle.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from lithify.model.groups.reads import NONE_NAMED, LogReads
from lithify.model.segment import Segment, volume_of
from lithify.model.settings.table import NO_LIMIT
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.settings.units import format_time
from lithify.model.topic.log import LogState
from lithify.rules.compaction.eligible.horizon import Horizon, compaction_horizon
from lithify.rules.compaction.eligible.required import round_clears
from lithify.rules.compaction.eligible.retention import (
    expired_bytes,
    gone_segments,
    segments_awaiting_round,
    values_expire_before_ms,
)
from lithify.rules.compaction.tombstones import expiry_of, next_expiry_ms
from lithify.rules.lifecycle.cuts import retained


@dataclass(frozen=True, slots=True)
class Dirtiness:
    """Compressed bytes below D, which rounds have cleaned, and those from D up to the horizon (C27)."""

    clean_bytes: int
    dirty_bytes: int
    oldest_dirty_timestamp_ms: int | None

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0

    def too_little(self, settings: TopicSettings) -> str:
        """Why so much does not make a log due (C28)."""
        ratio, threshold = settings.min_cleanable_dirty_ratio, settings.compaction_threshold_bytes
        if ratio >= 1 and threshold != NO_LIMIT:  # no ratio is above 1
            return f"{self.dirty_bytes} dirty bytes <= compaction.threshold.bytes={threshold}"
        return f"dirty ratio {self.ratio:.2f} <= {ratio:g}"


@dataclass(frozen=True, slots=True)
class Due:
    """Whether a log is due, with a reason for users."""

    due: bool
    reason: str
    due_at_ms: int | None = None
    """When it becomes due by the clock alone, if it will; in the past if it has."""
    overdue_ms: int = 0
    """How far it is past `max.compaction.lag.ms` (C29)."""
    by_retention: bool = False
    """Whether whole segments can be removed, which takes no round."""
    by_round: bool = True
    """Whether it takes a round, now or once these segments have gone."""


OF_A_REPLICA = Due(False, "a replica: only its source is compacted", by_round=False)
"""A replica changes as its source does, and by nothing else (C64)."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """One log at one time."""

    horizon: Horizon
    dirtiness: Dirtiness
    next_tombstone_expiry_ms: int | None
    verdict: Due

    @property
    def priority(self) -> tuple[int, float]:
        """Sorts due logs, the first one lowest: most overdue first, then by dirty ratio (C29)."""
        return -self.verdict.overdue_ms, -self.dirtiness.ratio


def dirtiness(state: LogState, segments: tuple[Segment, ...], horizon: Horizon) -> Dirtiness:
    """What is clean and dirty below the horizon; bytes at or above it count on neither side."""
    clean = [s for s in segments if s.end_offset <= state.first_dirty_offset]
    dirty = [s for s in segments if s.end_offset > state.first_dirty_offset and s.end_offset <= horizon.offset]
    return Dirtiness(
        clean_bytes=sum(s.size_bytes for s in clean) if state.view is None else state.view.volume.size_bytes,
        dirty_bytes=sum(s.size_bytes for s in dirty),
        oldest_dirty_timestamp_ms=min((s.min_timestamp_ms for s in dirty), default=None),
    )


def assess(
    state: LogState,
    segments: tuple[Segment, ...],
    settings: TopicSettings,
    now_ms: int,
    reads: LogReads = NONE_NAMED,
) -> Assessment:
    """The log at `now_ms`, whose `segments` are in offset order; if it is not due, the time from which it will be.

    This time holds as long as the groups that the topic names read no further than `reads` (C61, C62).
    """
    assessment = _assessed_at(state, segments, settings, now_ms, reads)
    if assessment.verdict.due:
        return assessment

    def is_due(time_ms: int) -> bool:
        return _assessed_at(state, segments, settings, time_ms, reads).verdict.due

    # Once due by the clock, a log remains due until a commit: a binary search over the times at which
    # anything can change finds the first one.
    times = sorted({t for t in _turning_points(state, segments, settings, reads) if t > now_ms})
    first = bisect_left(times, True, key=is_due)
    if first == len(times):
        return assessment
    earliest_ms = times[first]
    if values_expire_before_ms(settings, now_ms) is not None:  # single records go past retention in between
        earliest_ms = _halved(times[first - 1] if first else now_ms, earliest_ms, is_due)
    return replace(assessment, verdict=Due(False, assessment.verdict.reason, earliest_ms))


def _halved(before_ms: int, at_ms: int, is_due: Callable[[int], bool]) -> int:
    """The first time after `before_ms` at which the log is due; it is not due then, and is `at_ms`."""
    while at_ms - before_ms > 1:
        middle_ms = (before_ms + at_ms) // 2
        before_ms, at_ms = (before_ms, middle_ms) if is_due(middle_ms) else (middle_ms, at_ms)
    return at_ms


def next_tombstone_expiry_ms(state: LogState, horizon: Horizon, settings: TopicSettings, reads: LogReads) -> int | None:
    """When the next tombstone expires, without those that wait for the horizon to move (C20, C21, C61).

    None does while whole entries of Pulsar may hide any value (C53).
    """
    if entries_that_may_hide_values(state, settings):
        return None
    held = state.held_below(horizon.offset) or 0
    return next_expiry_ms(tuple(s for s in state.steps if s.end_offset > held), expiry_of(settings, reads))


def entries_that_may_hide_values(state: LogState, settings: TopicSettings) -> int:
    """How many whole entries of Pulsar keep all tombstones below D from expiring: chunks do not count (C53)."""
    above = state.dirty.sealed if settings.order is not None else 0
    return state.compacted_volume.sealed + above


def _assessed_at(
    state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int, reads: LogReads
) -> Assessment:
    """As `assess`, without a look ahead."""
    horizon = compaction_horizon(state, segments, settings, now_ms)
    assessment = Assessment(
        horizon,
        dirtiness(state, segments, horizon),
        next_tombstone_expiry_ms(state, horizon, settings, reads),
        Due(False, "nothing is past retention"),
    )
    return replace(assessment, verdict=_verdict(state, segments, settings, now_ms, reads, assessment))


def _verdict(
    state: LogState,
    segments: tuple[Segment, ...],
    settings: TopicSettings,
    now_ms: int,
    reads: LogReads,
    assessment: Assessment,
) -> Due:
    """Whether it is due, given the rest of its `assessment`; deadlines come before ratios."""
    gone = gone_segments(state, segments, settings, now_ms, reads.backlog_below) if settings.retains else ()
    dirt = assessment.dirtiness
    deadline_ms = _deadline_ms(dirt, settings) if settings.compacts else None
    if deadline_ms is not None and deadline_ms <= now_ms:
        since = f"dirty for longer than max.compaction.lag.ms, since {format_time(deadline_ms)}"
        overdue_ms = now_ms - deadline_ms + 1  # above 0, so that it goes first
        return Due(True, since, deadline_ms, overdue_ms=overdue_ms, by_retention=bool(gone))
    if gone:
        what = f"whole segments are past retention: {len(gone)}, of {volume_of(gone).size_bytes} bytes"
        # A log whose oldest segments expire before each look would never have a round otherwise.
        left = segments[len(gone) :]
        after = _assessed_at(retained(state, gone, left, settings), left, settings, now_ms, reads)
        return Due(True, what, now_ms, by_retention=True, by_round=after.verdict.due)
    if not settings.compacts:
        return assessment.verdict
    reason = next(_reasons(state, segments, settings, now_ms, assessment), None)
    if reason is not None:
        return reason
    if dirt.dirty_bytes == 0:
        return Due(False, "nothing dirty below the horizon")
    return Due(False, dirt.too_little(settings))


def _reasons(
    state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int, assessment: Assessment
) -> Iterator[Due]:
    """Why a log without a deadline is due (C28)."""
    ratio, threshold = settings.min_cleanable_dirty_ratio, settings.compaction_threshold_bytes
    horizon, dirt, expiry_ms = assessment.horizon, assessment.dirtiness, assessment.next_tombstone_expiry_ms
    if dirt.ratio > ratio:
        yield Due(True, f"dirty ratio {dirt.ratio:.2f} > {ratio:g}")
    if threshold != NO_LIMIT and dirt.dirty_bytes > threshold:
        yield Due(True, f"{dirt.dirty_bytes} dirty bytes > compaction.threshold.bytes={threshold}")
    if expiry_ms is not None and expiry_ms <= now_ms:
        yield Due(True, f"tombstones have expired, since {format_time(expiry_ms)}", expiry_ms)
    if round_clears(state, segments, settings, horizon):
        yield Due(True, state.round_required)
    total = volume_of(segments).size_bytes
    expired = expired_bytes(state, segments, horizon.offset, settings, now_ms)
    if expired > ratio * total:
        yield Due(True, f"about {expired} of {total} bytes are records past retention in retained segments")
    if horizon.offset > state.first_dirty_offset and segments_awaiting_round(state, segments, settings, now_ms):
        yield Due(True, "segments past retention need a round: the compacted view does not have them yet")


def _turning_points(
    state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, reads: LogReads
) -> Iterator[int]:
    """Times at which the clock alone can make a log due."""
    dirty = [s for s in segments if s.end_offset > state.first_dirty_offset]
    if settings.compacts:
        expiry = expiry_of(settings, reads)
        yield from (at_ms for s in state.steps if s.tombstones > 0 and (at_ms := expiry.at_ms(s)) is not None)
        yield from (s.max_timestamp_ms + settings.min_compaction_lag_ms for s in dirty)
        yield from (c.time_ms + settings.min_compaction_lag_ms for c in state.committed)
        if settings.max_compaction_lag_ms != NO_LIMIT:
            yield from (s.min_timestamp_ms + settings.max_compaction_lag_ms + 1 for s in dirty)
    if settings.deletes and settings.retention_ms != NO_LIMIT:
        yield from (s.max_timestamp_ms + settings.retention_ms + 1 for s in segments)


def _deadline_ms(dirt: Dirtiness, settings: TopicSettings) -> int | None:
    if settings.max_compaction_lag_ms == NO_LIMIT or dirt.oldest_dirty_timestamp_ms is None:
        return None
    return dirt.oldest_dirty_timestamp_ms + settings.max_compaction_lag_ms + 1  # strictly older
