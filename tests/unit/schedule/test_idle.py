"""When a log may be due, by its state alone (C14, C20, C21, C24, C28, C43); `tests/properties` has the proof."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.log import HeldTombstones, LogState, TombstoneStep, View
from lithify.model.segment import Volume
from lithify.schedule.assessment import Due
from lithify.schedule.idle import assess_idle, may_be_due_at_ms
from support.builders import some_settings

NOW_MS = 1000
STEPS = (TombstoneStep(4, 100, 1), TombstoneStep(9, 300, 1))


def a_state(*, clean=0, dirty=0, oldest_ms=0, **changes):
    """A log of ten offsets, of which nine are clean, with so many bytes clean and dirty."""
    state = LogState(
        0,
        first_dirty_offset=9 if dirty else 10,
        log_end_offset=10,
        clean=Volume(9, clean) if clean else Volume(),
        dirty=Volume(1, dirty) if dirty else Volume(),
        oldest_dirty_timestamp_ms=oldest_ms if dirty else None,
    )
    return replace(state, **changes)


def judge(state, now_ms=NOW_MS, **config):
    return may_be_due_at_ms(state, some_settings(**config), now_ms)


@pytest.mark.parametrize("config", [{}, {"cleanup_policy": "compact,delete"}, {"cleanup_policy": "delete"}])
def test_an_empty_log_waits_for_a_commit(config):
    assert judge(LogState(0), retention_bytes=0, retention_ms=0, max_compaction_lag_ms=1, **config) is None


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_clean_log_without_tombstones_waits_for_a_commit(policy):
    assert judge(a_state(clean=100), cleanup_policy=policy, retention_ms=-1) is None


@pytest.mark.parametrize(("dirty", "expected"), [(100, None), (101, NOW_MS)])
def test_dirt_counts_above_the_ratio(dirty, expected):
    assert judge(a_state(clean=100, dirty=dirty)) == expected


@pytest.mark.parametrize(
    ("clean", "dirty", "config", "expected", "due_at_ms"),
    [
        (100, 0, {}, "nothing dirty", None),
        (100, 50, {}, "dirty ratio 0.33 <= 0.5", None),
        (100, 200, {"min_compaction_lag_ms": 500}, "dirty records are too young", 1400),
        (0, 200, {"cleanup_policy": "delete", "retention_ms": 500}, "nothing is past retention", 1401),
    ],
)
def test_a_log_that_its_state_alone_says_is_not_due_says_why(clean, dirty, config, expected, due_at_ms):
    state, settings = a_state(clean=clean, dirty=dirty, oldest_ms=900), some_settings(**config)
    found = assess_idle(state, settings, NOW_MS)
    assert found.verdict == Due(False, expected, due_at_ms)
    assert (found.dirtiness.clean_bytes, found.dirtiness.dirty_bytes, found.horizon.offset) == (clean, dirty, 10)


def test_a_log_that_may_be_due_is_not_assessed_without_its_segments():
    assert assess_idle(a_state(clean=100, dirty=101), some_settings(), NOW_MS) is None


def test_side_by_side_the_view_is_what_is_clean():
    state = a_state(clean=1000, dirty=100, view=View(Volume(1, 50)))
    assert judge(state, compaction_mode="side-by-side") == NOW_MS


@pytest.mark.parametrize(("dirty", "expected"), [(50, None), (51, NOW_MS)])
def test_dirt_counts_above_the_threshold(dirty, expected):
    assert judge(a_state(clean=1000, dirty=dirty), compaction_threshold_bytes=50) == expected


@pytest.mark.parametrize(("now_ms", "expected"), [(0, 601), (601, 601), (700, 700)])
def test_a_deadline_is_known(now_ms, expected):
    assert judge(a_state(clean=1000, dirty=1, oldest_ms=100), now_ms, max_compaction_lag_ms=500) == expected


def test_a_minimum_lag_only_delays():
    state = a_state(clean=1, dirty=100, oldest_ms=900)
    assert judge(state, min_compaction_lag_ms=500) == 1400
    assert judge(state, min_compaction_lag_ms=500, max_compaction_lag_ms=500) == 1400
    assert judge(state, min_compaction_lag_bytes=99) == NOW_MS
    assert judge(state, min_compaction_lag_bytes=100, max_compaction_lag_ms=0) is None


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (None, 600),
        (HeldTombstones(4, 10), 800),
        (HeldTombstones(4, 9), 600),
        (HeldTombstones(9, 10), None),
    ],
)
def test_tombstones_expire_unless_they_are_held_whatever_the_horizon(held, expected):
    state = a_state(clean=100, steps=STEPS, held=held)
    assert judge(state, 0, delete_retention_ms=500) == expected
    assert judge(state, 0, delete_retention_ms=500, min_compaction_lag_ms=50) == expected


def test_a_round_that_is_required_is_due_where_there_are_rounds():
    state = a_state(clean=100, round_required="changed: null.key")
    assert judge(state) == NOW_MS
    assert judge(state, cleanup_policy="delete", retention_ms=-1) is None


POLICIES = ["delete", "compact,delete"]


@pytest.mark.parametrize("policy", POLICIES)
def test_where_no_round_has_been_the_oldest_record_tells_when_age_counts(policy):
    """The usual log with `delete` alone: no manifest is opened until its oldest record is past retention."""
    state = LogState(0, log_end_offset=10, dirty=Volume(10, 100), oldest_dirty_timestamp_ms=800)
    config = {"cleanup_policy": policy, "min_cleanable_dirty_ratio": 1, "retention_ms": 500}
    assert judge(state, **config) == 1301
    assert judge(state, **config, retention_bytes=101) == 1301
    assert judge(state, **config, retention_bytes=100) == NOW_MS


@pytest.mark.parametrize("policy", POLICIES)
def test_where_a_round_has_been_the_segments_are_needed_to_tell_their_age(policy):
    assert judge(a_state(clean=100), cleanup_policy=policy, retention_ms=10**9) == NOW_MS


@pytest.mark.parametrize("policy", POLICIES)
def test_without_limits_only_what_lies_below_the_start_can_go(policy):
    state = a_state(clean=100)
    assert judge(state, cleanup_policy=policy, retention_ms=-1) is None
    assert judge(replace(state, log_start_offset=5), cleanup_policy=policy, retention_ms=-1) == NOW_MS
    assert judge(replace(state, log_start_offset=5)) is None
