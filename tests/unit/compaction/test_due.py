"""When a log is due for a round, and what it says of it (C21, C27, C28)."""

from __future__ import annotations

import pytest

from lithify.compaction.due import Dirtiness, dirtiness, due
from lithify.compaction.horizon import Horizon, compaction_horizon
from lithify.model.log import LogState, TombstoneStep
from support.builders import a_log, some_settings


def dirt_of(text, *, dirty_from, now_ms=0, **config):
    log = a_log(text)
    state = log.state(dirty_from=dirty_from)
    horizon = compaction_horizon(state, log.segments, some_settings(**config), now_ms)
    return [s.size_bytes for s in log.segments], dirtiness(state, log.segments, horizon)


def test_clean_bytes_lie_below_the_first_dirty_offset_and_dirty_ones_above():
    """C27."""
    sizes, dirt = dirt_of("a=1!7 | b=2!8 | c=333!9", dirty_from=1)
    assert dirt == Dirtiness(sizes[0], sizes[1] + sizes[2], oldest_dirty_timestamp_ms=8)
    assert dirt.ratio == pytest.approx((sizes[1] + sizes[2]) / sum(sizes))


def test_bytes_at_or_above_the_horizon_count_on_neither_side():
    """C27."""
    sizes, dirt = dirt_of("a=1!7 | b=2!8 | c=333!900", dirty_from=1, now_ms=1000, min_compaction_lag_ms=500)
    assert (dirt.clean_bytes, dirt.dirty_bytes) == (sizes[0], sizes[1])


def test_nothing_of_nothing_is_no_dirt():
    """C27: 0/0 is 0."""
    assert dirt_of("", dirty_from=0)[1].ratio == 0.0


def judge(clean=0, dirty=0, *, oldest_ms=None, steps=(), now_ms=1000, **config):
    state = LogState(0, steps=tuple(steps))
    return due(state, Dirtiness(clean, dirty, oldest_ms), some_settings(**config), now_ms)


@pytest.mark.parametrize(("clean", "dirty", "expected"), [(50, 50, False), (50, 51, True), (0, 1, True), (0, 0, False)])
def test_due_above_the_dirty_ratio_not_at_it(clean, dirty, expected):
    """C28."""
    verdict = judge(clean, dirty, min_cleanable_dirty_ratio=0.5)
    assert verdict.due is expected
    assert "dirty" in verdict.reason


def test_a_ratio_of_one_is_never_reached():
    """C28: the log waits for another reason."""
    assert not judge(0, 10**9, min_cleanable_dirty_ratio=1).due


@pytest.mark.parametrize(("now_ms", "expected"), [(600, False), (601, True)])
def test_due_when_the_oldest_dirty_record_is_older_than_the_maximum(now_ms, expected):
    """C28: whatever the ratio."""
    verdict = judge(10**6, 1, oldest_ms=100, now_ms=now_ms, max_compaction_lag_ms=500)
    assert verdict.due is expected
    assert verdict.due_at_ms == 601
    assert ("max.compaction.lag.ms" in verdict.reason) is expected


def test_without_a_maximum_age_makes_no_log_due():
    """C28."""
    assert judge(10**6, 1, oldest_ms=0, now_ms=10**15).due_at_ms is None


def test_the_maximum_age_does_not_reach_beyond_the_horizon():
    """C28: it overrides the ratio, not C14; records above H are not asked for their age."""
    log = a_log("a=1!1 | b=2!5")
    state = log.state(dirty_from=1)
    dirt = dirtiness(state, log.segments, Horizon(1, "min.compaction.lag.ms"))
    assert dirt.oldest_dirty_timestamp_ms is None
    assert not due(state, dirt, some_settings(max_compaction_lag_ms=1), 10**6).due


@pytest.mark.parametrize(("dirty", "expected"), [(100, False), (101, True)])
def test_due_above_the_threshold_when_one_is_set(dirty, expected):
    """C28."""
    verdict = judge(10**6, dirty, compaction_threshold_bytes=100)
    assert verdict.due is expected
    assert ("compaction.threshold.bytes" in verdict.reason) is expected


@pytest.mark.parametrize(("now_ms", "expected"), [(1499, False), (1500, True)])
def test_due_by_the_clock_when_tombstones_expire(now_ms, expected):
    """C21: whatever the dirty bytes, and it says when."""
    verdict = judge(10**6, 0, steps=[TombstoneStep(40, 1000, 3)], now_ms=now_ms, delete_retention_ms=500)
    assert verdict.due is expected
    assert verdict.due_at_ms == 1500
    assert ("expired" in verdict.reason) is expected


def test_steps_without_tombstones_make_nothing_due():
    """C21."""
    verdict = judge(10**6, 0, steps=[TombstoneStep(40, 0, 0)], now_ms=10**15)
    assert (verdict.due, verdict.due_at_ms) == (False, None)


def test_the_earlier_of_two_times_is_given():
    """C21, C28."""
    verdict = judge(
        10**6,
        1,
        oldest_ms=100,
        steps=[TombstoneStep(40, 300, 1)],
        now_ms=200,
        max_compaction_lag_ms=500,
        delete_retention_ms=500,
    )
    assert (verdict.due, verdict.due_at_ms) == (False, 601)


@pytest.mark.parametrize("config", [{"max_compaction_lag_ms": 500}, {"delete_retention_ms": 500}])
def test_it_becomes_due_at_the_very_time_that_it_says(config):
    """C21, C28: whoever sleeps until then finds it due, and a millisecond earlier not."""
    given = {"oldest_ms": 100, "steps": [TombstoneStep(40, 300, 1)], "max_compaction_lag_ms": -1, **config}
    at_ms = judge(10**6, 1, **given).due_at_ms
    assert judge(10**6, 1, **given, now_ms=at_ms).due
    assert not judge(10**6, 1, **given, now_ms=at_ms - 1).due


def test_a_deadline_is_named_before_a_ratio():
    """C28, C29: the most pressing reason is the one to show."""
    assert "max.compaction.lag.ms" in judge(0, 1, oldest_ms=0, max_compaction_lag_ms=1).reason
