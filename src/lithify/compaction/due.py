"""When a log is due for a round, and why or why not (C21, C27, C28)."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.compaction.horizon import Horizon
from lithify.compaction.steps import next_expiry_ms
from lithify.model.log import LogState
from lithify.model.segment import Segment
from lithify.model.settings import NO_LIMIT, TopicSettings
from lithify.model.units import format_time


@dataclass(frozen=True, slots=True)
class Dirtiness:
    """Compressed bytes below the first dirty offset, and from there up to the horizon (C27)."""

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


def dirtiness(state: LogState, segments: tuple[Segment, ...], horizon: Horizon) -> Dirtiness:
    """What is clean and dirty below the horizon; bytes at or above it count on neither side."""
    clean = [s for s in segments if s.end_offset <= state.first_dirty_offset]
    dirty = [s for s in segments if s.end_offset > state.first_dirty_offset and s.end_offset <= horizon.offset]
    return Dirtiness(
        clean_bytes=sum(s.size_bytes for s in clean),
        dirty_bytes=sum(s.size_bytes for s in dirty),
        oldest_dirty_timestamp_ms=min((s.min_timestamp_ms for s in dirty), default=None),
    )


def due(state: LogState, dirt: Dirtiness, settings: TopicSettings, now_ms: int) -> Due:
    """Whether the log is due for a round at `now_ms`; deadlines go before ratios."""
    deadline_ms = _deadline_ms(dirt, settings)
    expiry_ms = next_expiry_ms(state.steps, settings.delete_retention_ms)
    clock_ms = min((t for t in (deadline_ms, expiry_ms) if t is not None), default=None)
    if deadline_ms is not None and deadline_ms <= now_ms:
        return Due(True, f"dirty for longer than max.compaction.lag.ms, since {format_time(deadline_ms)}", clock_ms)
    if dirt.ratio > settings.min_cleanable_dirty_ratio:
        return Due(True, f"dirty ratio {dirt.ratio:.2f} > {settings.min_cleanable_dirty_ratio:g}", clock_ms)
    threshold = settings.compaction_threshold_bytes
    if threshold != NO_LIMIT and dirt.dirty_bytes > threshold:
        return Due(True, f"{dirt.dirty_bytes} dirty bytes > compaction.threshold.bytes={threshold}", clock_ms)
    if expiry_ms is not None and expiry_ms <= now_ms:
        return Due(True, f"tombstones have expired, since {format_time(expiry_ms)}", clock_ms)
    if dirt.dirty_bytes == 0:
        return Due(False, "nothing dirty below the horizon", clock_ms)
    return Due(False, f"dirty ratio {dirt.ratio:.2f} <= {settings.min_cleanable_dirty_ratio:g}", clock_ms)


def _deadline_ms(dirt: Dirtiness, settings: TopicSettings) -> int | None:
    if settings.max_compaction_lag_ms == NO_LIMIT or dirt.oldest_dirty_timestamp_ms is None:
        return None
    return dirt.oldest_dirty_timestamp_ms + settings.max_compaction_lag_ms + 1  # older than, not as old as
