"""When a log may be due by its state alone, so that no manifest is opened (C21, C28).

    state of a log ─► None          only a commit can make it due
                   ─► a time        nothing is due before it; from then on `assess` reads the segments
                   ─► now           `assess` reads them now

The time is never too late, and exact for logs with `compact` alone and without a minimum lag. No
state has the ages of segments that a round has left. So the segments of a log with `delete` and a
limit of age have to be read as soon as it has such segments.
"""

from __future__ import annotations

from collections.abc import Iterator

from lithify.model.groups.reads import NONE_NAMED, LogReads
from lithify.model.settings.table import NO_LIMIT
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState
from lithify.rules.compaction.eligible.horizon import LIMITED_BY_END, Horizon
from lithify.rules.schedule.assessment import OF_A_REPLICA, Assessment, Dirtiness, Due, next_tombstone_expiry_ms


def may_be_due_at_ms(state: LogState, settings: TopicSettings, now_ms: int, reads: LogReads = NONE_NAMED) -> int | None:
    """The first time from `now_ms` on at which the log may be due; None if only a commit can make it so.

    A commit, or groups that the topic names, if they read further than `reads` says (C61, C62).
    """
    times = [
        *_trimming_times(state, now_ms, reads),
        *_retention_times(state, settings, now_ms),
        *_round_times(state, settings, now_ms, reads),
    ]
    return max(now_ms, min(times)) if times else None


def assess_idle(
    state: LogState, settings: TopicSettings, now_ms: int, reads: LogReads = NONE_NAMED
) -> Assessment | None:
    """The assessment of a log that is not due by its state alone; None if its segments have to be read.

    It assumes the horizon at the log end: no more than this is dirty, and no tombstone expires earlier.
    """
    due_at_ms = may_be_due_at_ms(state, settings, now_ms, reads)
    if due_at_ms is not None and due_at_ms <= now_ms:
        return None
    dirt = _dirtiness(state)
    if not settings.compacts:
        reason = "nothing is past retention"
    elif dirt.dirty_bytes == 0:
        reason = "nothing dirty"
    elif dirt.ratio > settings.min_cleanable_dirty_ratio:
        reason = "dirty records are too young"
    else:
        reason = dirt.too_little(settings)
    expiry_ms = _tombstone_expiry_ms(state, settings, reads)
    return Assessment(_log_end(state), dirt, expiry_ms, Due(False, reason, due_at_ms))


def assess_replica(state: LogState, settings: TopicSettings) -> Assessment:
    """The assessment of a log of a replica, which is never due: no segments have to be read for it (C64)."""
    return Assessment(
        _log_end(state), _dirtiness(state), _tombstone_expiry_ms(state, settings, NONE_NAMED), OF_A_REPLICA
    )


def _log_end(state: LogState) -> Horizon:
    return Horizon(state.log_end_offset, LIMITED_BY_END)


def _dirtiness(state: LogState) -> Dirtiness:
    """Clean and dirty bytes of the whole log (C27)."""
    clean = state.clean if state.view is None else state.view.volume
    return Dirtiness(clean.size_bytes, state.dirty.size_bytes, state.oldest_dirty_timestamp_ms)


def _tombstone_expiry_ms(state: LogState, settings: TopicSettings, reads: LogReads) -> int | None:
    """The horizon is at the log end at most, and the further it is the fewer tombstones are held (C20)."""
    return next_tombstone_expiry_ms(state, _log_end(state), settings, reads)


def _trimming_times(state: LogState, now_ms: int, reads: LogReads) -> Iterator[int]:
    """Now, if the front of the backlog may hold a segment that the view has and all groups have read (C62)."""
    if state.log_start_offset < min(state.first_dirty_offset, reads.backlog_below) and state.clean.records:
        yield now_ms


def _retention_times(state: LogState, settings: TopicSettings, now_ms: int) -> Iterator[int]:
    """When records may be past retention (C24)."""
    if not settings.deletes or not state.volume.records:
        return
    has_clean = state.clean.records > 0
    by_size = settings.retention_bytes != NO_LIMIT and state.volume.size_bytes >= settings.retention_bytes
    if by_size or (has_clean and state.log_start_offset > 0):  # clean bytes may lie below the log start
        yield now_ms
    if settings.retention_ms == NO_LIMIT:
        return
    if has_clean or state.oldest_dirty_timestamp_ms is None:
        yield now_ms
    else:
        yield state.oldest_dirty_timestamp_ms + settings.retention_ms + 1


def _round_times(state: LogState, settings: TopicSettings, now_ms: int, reads: LogReads) -> Iterator[int]:
    """When a round may be due for another reason (C28)."""
    if not settings.compacts:
        return
    if state.round_required:
        yield now_ms
    expiry_ms = _tombstone_expiry_ms(state, settings, reads)
    if expiry_ms is not None:
        yield expiry_ms
    touched_ms = _dirt_touched_from_ms(state, settings, now_ms)
    if touched_ms is None:
        return
    dirt, threshold = _dirtiness(state), settings.compaction_threshold_bytes
    if dirt.ratio > settings.min_cleanable_dirty_ratio or (threshold != NO_LIMIT and dirt.dirty_bytes > threshold):
        yield touched_ms
    if settings.max_compaction_lag_ms != NO_LIMIT and dirt.oldest_dirty_timestamp_ms is not None:
        yield max(touched_ms, dirt.oldest_dirty_timestamp_ms + settings.max_compaction_lag_ms + 1)


def _dirt_touched_from_ms(state: LogState, settings: TopicSettings, now_ms: int) -> int | None:
    """From when on a round may clean something dirty (C14); None if all dirty bytes wait above the horizon."""
    oldest_ms, lag_bytes = state.oldest_dirty_timestamp_ms, settings.min_compaction_lag_bytes
    if oldest_ms is None or (lag_bytes > 0 and state.dirty.size_bytes <= lag_bytes):
        return None
    if settings.min_compaction_lag_ms <= 0:
        return now_ms
    return oldest_ms + settings.min_compaction_lag_ms  # the first segment is at least as young as the oldest record
