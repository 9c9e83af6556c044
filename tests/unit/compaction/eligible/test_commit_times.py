"""From when a minimum lag counts: timestamps, or the later of these and the commit (C14)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.model.record import Record
from lithify.model.topic.log import CommittedEnd, LogState
from lithify.rules.compaction.eligible.horizon import (
    COMMITTED_KEPT,
    LAG_PARTS,
    committed_after,
    committed_ms,
    compaction_horizon,
)
from lithify.service.change.alter import alter
from lithify.service.change.cut import truncate
from lithify.service.change.undo import undo
from support.builders import a_segment, some_settings
from support.topics.memory_topic import ORDERS, MemoryTopic

LAG_MS = 800
FROM_COMMIT = {"min_compaction_lag_ms": LAG_MS, "min_compaction_lag_from": "commit"}
SETTINGS = some_settings(**FROM_COMMIT)


@given(st.lists(st.tuples(st.integers(0, 300), st.sampled_from(["append", "round", "cut"])), max_size=60))
def test_what_was_committed_within_the_lag_waits_and_not_much_longer(acts):
    """C14: at most by a part of the lag, however many commits there are; and few entries are kept for it."""
    log, now_ms, commits = LogState(0), 0, []
    for later_ms, act in acts:
        now_ms += later_ms
        end = log.log_end_offset
        if act == "append":
            log, commits = replace(log, log_end_offset=end + 2), [*commits, (end, end + 2, now_ms)]
        elif act == "cut" and end > log.first_dirty_offset:
            log, commits = (
                replace(log, log_end_offset=end - 1),
                [(b, min(e, end - 1), t) for b, e, t in commits if b < end - 1],
            )
        log = replace(log, committed=committed_after(log, SETTINGS, now_ms))
        segments = tuple(a_segment(f"s{b}", b, e) for b, e, _ in commits)
        horizon = compaction_horizon(log, segments, SETTINGS, now_ms).offset
        for base, stop, time_ms in commits:
            if stop > log.first_dirty_offset and now_ms - time_ms < LAG_MS:
                assert horizon <= max(base, log.first_dirty_offset)
        old = [stop for _, stop, time_ms in commits if now_ms - time_ms >= LAG_MS + LAG_MS // LAG_PARTS]
        assert horizon >= max(old, default=0)
        if act == "round":
            log = replace(log, first_dirty_offset=horizon)
            log = replace(log, committed=committed_after(log, SETTINGS, now_ms))
        assert len(log.committed) <= LAG_PARTS + 4


@pytest.mark.parametrize("behind_ms", [LAG_MS // LAG_PARTS, LAG_MS, 5 * LAG_MS])
def test_a_clock_that_is_behind_delays_rounds_and_does_not_end_them(behind_ms):
    """C14, C46: also where there is an append in every part of the lag, by a clock that is right."""
    log, segments = LogState(0), ()
    for now_ms in range(10_000, 30_000, 50):
        end = log.log_end_offset
        segments += (a_segment(f"s{end}", end, end + 1),)
        log = replace(log, log_end_offset=end + 1)
        log = replace(log, committed=committed_after(log, SETTINGS, now_ms))
        horizon = compaction_horizon(log, segments, SETTINGS, now_ms - behind_ms)
        log = replace(log, first_dirty_offset=horizon.offset)
    waits_ms = LAG_MS + 2 * behind_ms + 2 * LAG_MS // LAG_PARTS
    assert log.log_end_offset - waits_ms // 50 <= log.first_dirty_offset < log.log_end_offset - LAG_MS // 50


def test_old_timestamps_do_not_count_where_commits_do():
    """C14: what is written now with a timestamp of long ago waits for the lag all the same."""
    for start, horizon in (("timestamp", 1), ("commit", 0)):
        topic = MemoryTopic(now_ms=10_000, **{**FROM_COMMIT, "min_compaction_lag_from": start})
        topic.append([Record(b"a", b"1", 5)])
        topic.clock.advance(LAG_MS - 1)
        assert topic.compact().logs[0].horizon == horizon
        topic.clock.advance(1)
        assert topic.compact().logs[0].horizon == 1


def test_young_timestamps_count_where_commits_do_too():
    """C14: the later of both."""
    topic = MemoryTopic(now_ms=10_000, **FROM_COMMIT)
    topic.append([Record(b"a", b"1", 10_500)])
    topic.clock.advance(LAG_MS)
    assert topic.compact().logs[0].horizon == 0
    topic.clock.advance(500)
    assert topic.compact().logs[0].horizon == 1


def test_a_topic_that_switches_it_on_waits_for_what_is_dirty_then():
    """C43, C14: no commit stored when that was appended."""
    topic = MemoryTopic(now_ms=10_000, min_compaction_lag_ms=LAG_MS)
    topic.append([Record(b"a", b"1", 5)])
    topic.clock.advance(LAG_MS)
    alter(topic.warehouse, ORDERS, {"min.compaction.lag.from": "commit"})
    assert topic.log().committed == (CommittedEnd(1, 10_000 + LAG_MS),)
    assert topic.compact().logs[0].horizon == 0
    alter(topic.warehouse, ORDERS, {"min.compaction.lag.from": "timestamp"})
    assert topic.log().committed == ()
    assert topic.compact().logs[0].horizon == 1


def test_an_undone_round_and_a_truncation_leave_no_record_without_its_time():
    """C7, C14, C26: what is dirty again waits anew, offsets that are given anew wait for their own commit."""
    topic = MemoryTopic(now_ms=10_000, **FROM_COMMIT)
    topic.append([Record(b"a", b"1", 5), Record(b"b", b"1", 5)])
    topic.clock.advance(LAG_MS)
    topic.compact()
    assert topic.log().committed == ()
    undo(topic.warehouse, ORDERS)
    assert topic.log().committed == (CommittedEnd(2, 10_000 + LAG_MS),)
    topic.clock.advance(LAG_MS)
    truncate(topic.warehouse, ORDERS, 0, 1)
    topic.append([Record(b"c", b"1", 5)])
    assert topic.compact().logs[0].horizon == 1


def test_a_longer_lag_has_no_more_entries_than_are_kept():
    many = tuple(CommittedEnd(n, n) for n in range(1, 100))
    log = LogState(0, log_end_offset=100, committed=many)
    kept = committed_after(log, replace(SETTINGS, min_compaction_lag_ms=10**6), 500)
    assert len(kept) == COMMITTED_KEPT
    assert all(committed_ms(kept, n) >= n for n in range(1, 100))


def test_where_timestamps_count_nothing_is_kept():
    for settings in (some_settings(), some_settings(min_compaction_lag_from="commit")):
        assert committed_after(LogState(0, log_end_offset=5), settings, 10) == ()
