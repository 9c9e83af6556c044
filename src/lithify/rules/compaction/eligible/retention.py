"""Which whole segments leave a log at its front: by retention, or read by groups (C24, C25, C26, C62).

    segments   [ old ][ old ][ young ][ old ]        the first two go, S moves to the end of the second
                             ▲ S                     the last one waits for its turn

A segment is dropped if one of these is true:

- `delete-records` has cut above it;
- its newest record is past `retention.ms`;
- the segments after it hold `retention.bytes` without it;
- side by side, all groups of `backlog.trim.groups` have read it.
"""

from __future__ import annotations

from dataclasses import replace

from lithify.model.segment import Segment
from lithify.model.settings.table import NO_LIMIT
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState


def gone_segments(
    state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int, read_below: int = 0
) -> tuple[Segment, ...]:
    """The segments at the front of the log, given in offset order, that are dropped whole.

    Side by side only segments wholly below D are: the view does not have the others yet. All groups that let the
    backlog be trimmed have read what is below `read_below`.
    """
    rest = sum(segment.size_bytes for segment in segments)
    gone = 0
    for segment in segments:
        rest -= segment.size_bytes
        if settings.side_by_side and segment.end_offset > state.first_dirty_offset:
            break
        needless = segment.end_offset <= max(state.log_start_offset, read_below)
        if not needless and not past_retention(segment, rest, settings, now_ms):
            break
        gone += 1
    return segments[:gone]


def segments_awaiting_round(
    state: LogState, segments: tuple[Segment, ...], settings: TopicSettings, now_ms: int
) -> tuple[Segment, ...]:
    """The segments past retention that wait for a round, after those that are dropped whole (C33).

    Side by side the view does not have the records at or above D yet.
    """
    if not settings.side_by_side:
        return ()
    gone = gone_segments(state, segments, settings, now_ms)
    once_covered = replace(state, first_dirty_offset=state.log_end_offset)
    return gone_segments(once_covered, segments, settings, now_ms)[len(gone) :]


def start_after(state: LogState, gone: tuple[Segment, ...]) -> int:
    """The log start offset once these segments at the front are dropped."""
    return max(state.log_start_offset, gone[-1].end_offset if gone else 0)


def past_retention(segment: Segment, rest_bytes: int, settings: TopicSettings, now_ms: int) -> bool:
    """Whether the oldest segment is past retention, with so many bytes behind it (C24)."""
    if not settings.deletes:
        return False
    by_age = settings.retention_ms != NO_LIMIT and segment.max_timestamp_ms < now_ms - settings.retention_ms
    by_size = settings.retention_bytes != NO_LIMIT and rest_bytes >= settings.retention_bytes
    return by_age or by_size


def values_expire_before_ms(settings: TopicSettings, now_ms: int) -> int | None:
    """A round drops records with a lower timestamp, except tombstones (C24); None if age does not count.

    A view keeps a key until a tombstone or a newer record, so side by side age does not count.
    """
    if not (settings.compacts and settings.deletes) or settings.side_by_side or settings.retention_ms == NO_LIMIT:
        return None
    return now_ms - settings.retention_ms


def may_age(segment: Segment, before_ms: int | None, aged_before_ms: int | None) -> bool:
    """Whether it can hold values older than `before_ms` that the round of `aged_before_ms` has not dropped."""
    if before_ms is None or segment.min_timestamp_ms >= before_ms:
        return False
    return aged_before_ms is None or aged_before_ms <= min(segment.max_timestamp_ms, before_ms - 1)


def expired_bytes(
    state: LogState, segments: tuple[Segment, ...], horizon: int, settings: TopicSettings, now_ms: int
) -> int:
    """Bytes of single records past retention in segments wholly below the horizon (C28).

    Metadata has only the range of a segment's timestamps, so they are assumed to be spread evenly.
    Values below the age of an earlier round are not counted, or the log would be due for ever. Less than
    one record is not counted either, as an old tombstone among young values makes the range wide.
    """
    before_ms = values_expire_before_ms(settings, now_ms)
    if before_ms is None:
        return 0
    past_retention_bytes = 0
    for segment in segments:
        clean = segment.end_offset <= state.first_dirty_offset
        aged_before_ms = state.aged_before_ms if clean else None
        if segment.end_offset <= horizon and may_age(segment, before_ms, aged_before_ms):
            since_ms = segment.min_timestamp_ms
            if aged_before_ms is not None:
                since_ms = max(since_ms, aged_before_ms)
            span_ms = segment.max_timestamp_ms - segment.min_timestamp_ms + 1
            share = min(1.0, (before_ms - since_ms) / span_ms)
            if aged_before_ms is None or share * segment.records >= 1:
                past_retention_bytes += int(segment.size_bytes * share)
    return past_retention_bytes
