"""When a log is due, what it says of it, and which log goes first (C21, C26 to C29, C33, C43)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.groups.reads import NONE_NAMED
from lithify.model.segment import Volume, volume_of
from lithify.model.topic.log import CommittedEnd, HeldTombstones, LogState, TombstoneStep, View
from lithify.rules.compaction.eligible.horizon import Horizon, compaction_horizon
from lithify.rules.schedule.assessment import Assessment, Dirtiness, Due, assess, dirtiness, next_tombstone_expiry_ms
from support.builders import a_log, a_segment, some_settings


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


def test_side_by_side_the_view_is_what_is_clean():
    """C27: however large the backlog below D is."""
    log = a_log("a=1 | b=2 | c=3")
    state = replace(log.state(dirty_from=2), view=View(Volume(1, 5)))
    dirt = dirtiness(state, log.segments, Horizon(3, "log end"))
    assert (dirt.clean_bytes, dirt.dirty_bytes) == (5, log.segments[2].size_bytes)


def a_state(**changes):
    """A log of ten offsets, of which the first nine are clean."""
    return replace(LogState(0, first_dirty_offset=9, log_end_offset=10), **changes)


def verdict_on(state, segments, settings, now_ms):
    return assess(state, segments, settings, now_ms).verdict


def judge(clean=0, dirty=0, *, oldest_ms=0, now_ms=1000, state=None, **config):
    """The verdict on a clean segment and a dirty one with so many bytes."""
    times = {"min_timestamp_ms": oldest_ms, "max_timestamp_ms": oldest_ms}
    segments = (a_segment("clean", 0, 9, size_bytes=clean), a_segment("dirty", 9, 10, size_bytes=dirty, **times))
    return verdict_on(state or a_state(), segments, some_settings(**config), now_ms)


MUCH = 10**6
STEPS = (TombstoneStep(4, 100, 1), TombstoneStep(9, 300, 1))
REQUIRED = {"clean": MUCH, "state": a_state(round_required="changed: null.key")}
EXPIRES = {"clean": MUCH, "state": a_state(steps=(TombstoneStep(9, 1000, 3),)), "delete_retention_ms": 500}
AGES = {"clean": MUCH, "dirty": 1, "oldest_ms": 100, "max_compaction_lag_ms": 500}
EITHER = {**EXPIRES, **AGES, "state": a_state(steps=(TombstoneStep(9, 300, 1),)), "now_ms": 200}
DELETES = {"cleanup_policy": "delete", "retention_ms": -1}
LATE = "dirty for longer than max.compaction.lag.ms, since 1970-01-01T00:00:00.601Z"
CLEAN = "nothing dirty below the horizon"
LITTLE = "dirty ratio 0.00 <= 0.5"
JUDGED = {
    "C28: at the dirty ratio": ({"clean": 50, "dirty": 50}, Due(False, "dirty ratio 0.50 <= 0.5")),
    "C28: above it": ({"clean": 50, "dirty": 51}, Due(True, "dirty ratio 0.50 > 0.5")),
    "C28: all is dirty": ({"dirty": 1}, Due(True, "dirty ratio 1.00 > 0.5")),
    "C28: nothing at all": ({}, Due(False, CLEAN)),
    "C28: a ratio of 1 is never reached": (
        {"dirty": MUCH, "min_cleanable_dirty_ratio": 1},
        Due(False, "dirty ratio 1.00 <= 1"),
    ),
    "C28: a ratio of 1 beside a threshold": (
        {"dirty": 100, "min_cleanable_dirty_ratio": 1, "compaction_threshold_bytes": 100},
        Due(False, "100 dirty bytes <= compaction.threshold.bytes=100"),
    ),
    "C28: as old as the maximum": (AGES | {"now_ms": 600}, Due(False, LITTLE, 601)),
    "C28, C29: older, whatever the ratio": (AGES | {"now_ms": 601}, Due(True, LATE, 601, overdue_ms=1)),
    "C29: overdue since": (AGES | {"now_ms": 700}, Due(True, LATE, 601, overdue_ms=100)),
    "C28: no maximum": (AGES | {"now_ms": 10**15, "max_compaction_lag_ms": -1}, Due(False, LITTLE)),
    "C28: at the threshold": ({"clean": MUCH, "dirty": 100, "compaction_threshold_bytes": 100}, Due(False, LITTLE)),
    "C28: above it, in bytes": (
        {"clean": MUCH, "dirty": 101, "compaction_threshold_bytes": 100},
        Due(True, "101 dirty bytes > compaction.threshold.bytes=100"),
    ),
    "C21: before tombstones expire": (EXPIRES | {"now_ms": 1499}, Due(False, CLEAN, 1500)),
    "C21: by the clock alone": (
        EXPIRES | {"now_ms": 1500},
        Due(True, "tombstones have expired, since 1970-01-01T00:00:01.500Z", 1500),
    ),
    "C21: steps without tombstones": (
        EXPIRES | {"state": a_state(steps=(TombstoneStep(9, 0, 0),)), "now_ms": 10**15},
        Due(False, CLEAN),
    ),
    "C21, C28: the earlier of two times is the age": (EITHER, Due(False, LITTLE, 601)),
    "C21, C28: or the tombstones": (EITHER | {"max_compaction_lag_ms": 800}, Due(False, LITTLE, 800)),
    "C26, C43: a required round": (REQUIRED, Due(True, "changed: null.key")),
    "C43: none is required where nothing is compacted": (REQUIRED | DELETES, Due(False, "nothing is past retention")),
    "C23: with delete alone neither dirt nor tombstones nor age": (
        {"dirty": MUCH, "state": a_state(steps=STEPS), "now_ms": 10**9, "max_compaction_lag_ms": 1, **DELETES},
        Due(False, "nothing is past retention"),
    ),
}


@pytest.mark.parametrize(("given", "expected"), JUDGED.values(), ids=JUDGED)
def test_whether_a_log_is_due_and_why(given, expected):
    """C21, C23, C26, C28, C29, C43."""
    assert judge(**given) == expected


def test_the_maximum_age_does_not_reach_beyond_the_horizon():
    """C28: it overrides the ratio, not C14; a record above H makes the log due when H has passed it."""
    config = {"max_compaction_lag_ms": 500, "min_compaction_lag_ms": 400, "now_ms": 650}
    assert judge(10**6, 1, oldest_ms=100, **config).due
    log = a_log("a=1!0 | b=1!100 c=1!900")
    state = log.state(dirty_from=1)
    settings = some_settings(max_compaction_lag_ms=500, min_compaction_lag_ms=400, min_cleanable_dirty_ratio=1)
    verdict = verdict_on(state, log.segments, settings, 700)
    assert (verdict.due, verdict.due_at_ms) == (False, 1300)
    assert verdict_on(state, log.segments, settings, 1300).overdue_ms == 700


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (None, 600),
        (HeldTombstones(4, 10), 800),
        (HeldTombstones(4, 11), 800),
        (HeldTombstones(4, 9), 600),
        (HeldTombstones(9, 10), None),
    ],
)
def test_held_tombstones_make_nothing_due_until_the_horizon_moves(held, expected):
    """C20, C21: the horizon is 10 here; a round at the same one would find the same."""
    state = a_state(steps=STEPS, held=held)
    settings = some_settings(delete_retention_ms=500)
    assert next_tombstone_expiry_ms(state, Horizon(10, "log end"), settings, NONE_NAMED) == expected
    assert judge(10**6, 1, state=state, now_ms=500, delete_retention_ms=500).due_at_ms == expected


@pytest.mark.parametrize(
    ("drawn", "chunks", "waits", "expected"),
    [
        ("□a=x b=1", 1, False, 800),
        ("□a=x □b=x", 1, False, 800),
        ("□a=x b=1", 2, False, 600),
        ("b=1 c=1", 1, False, 600),
        ("□a=x b=1", 1, True, 600),
        ("□a=x b=1 □=x", 1, False, None),
    ],
)
@pytest.mark.parametrize("in_view", [False, True])
def test_what_chunks_hold_makes_nothing_due_wherever_the_horizon_is(in_view, drawn, chunks, waits, expected):
    """C53, C21: until a chunk goes; then a round finds out which have to stay."""
    volume = volume_of(a_log(drawn).segments)
    parts = {"view": View(volume)} if in_view else {"clean": volume}
    state = a_state(steps=STEPS, held=HeldTombstones(4, 5, chunks, waits), **parts)
    settings = some_settings(delete_retention_ms=500)
    assert next_tombstone_expiry_ms(state, Horizon(10, "log end"), settings, NONE_NAMED) == expected


def test_a_ratio_that_the_horizon_will_bring_has_its_time():
    """C28, C14: the first segment is old enough at 400, the second, which makes the ratio, at 500."""
    log = a_log("a=xxxxxxxxxxxxxxxxxxxxxxxxxx!0 | b=1!300 | c=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx!400")
    settings = some_settings(min_compaction_lag_ms=100)
    verdict = verdict_on(log.state(dirty_from=1), log.segments, settings, 350)
    assert (verdict.due, verdict.due_at_ms) == (False, 500)


RETAINED = {"cleanup_policy": "compact,delete", "retention_ms": 50}
BESIDE = {"compaction_mode": "side-by-side"}


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_due_when_a_whole_segment_can_go(policy):
    """C28: with `delete`, by age at a time that is known before, or by size; never with `compact` alone."""
    log = a_log("a=1!10 b=1!20 | c=1!90")
    state = log.state(dirty_from=3)
    settings = some_settings(cleanup_policy=policy, retention_ms=50, min_cleanable_dirty_ratio=1)
    verdict = verdict_on(state, log.segments, settings, 60)
    assert (verdict.due, verdict.due_at_ms) == (False, 71)
    assert verdict_on(state, log.segments, settings, 71).reason == "whole segments are past retention: 1, of 36 bytes"
    by_size = some_settings(cleanup_policy=policy, retention_ms=-1, retention_bytes=18)
    assert verdict_on(state, log.segments, by_size, 0).due
    assert not verdict_on(state, log.segments, some_settings(retention_ms=50), 10**6).due


def test_due_when_enough_single_records_are_past_retention():
    """C28: more than the dirty ratio of the log's bytes, as far as metadata can tell, at the very time it says."""
    segments = (
        a_segment("old", 0, 10, min_timestamp_ms=1, max_timestamp_ms=1000),
        a_segment("new", 10, 15, min_timestamp_ms=2000, max_timestamp_ms=2000),
    )
    state = LogState(0, first_dirty_offset=15, log_end_offset=15)
    settings = some_settings(cleanup_policy="compact,delete", retention_ms=50)
    verdict = verdict_on(state, segments, settings, 100)
    assert (verdict.due, verdict.due_at_ms) == (False, 802)  # 751 of 1000 bytes, in 1500
    assert "records past retention in retained segments" in verdict_on(state, segments, settings, 802).reason
    assert not verdict_on(state, segments, settings, 801).due
    for other in ({"cleanup_policy": "compact"}, {"cleanup_policy": "compact,delete", **BESIDE}):
        assert verdict_on(state, segments, some_settings(retention_ms=50, **other), 100).due_at_ms != 802


def test_segments_past_retention_wait_for_a_round_side_by_side():
    """C33, C28: one that the horizon lets run, else there is nothing to do."""
    log = a_log("a=1!10 | b=1!90")
    state = log.state()
    settings = some_settings(**RETAINED, **BESIDE, min_cleanable_dirty_ratio=1)
    assert verdict_on(state, log.segments, settings, 60).due_at_ms == 61
    assert "the compacted view does not have them yet" in verdict_on(state, log.segments, settings, 61).reason
    young = some_settings(**RETAINED, **BESIDE, min_cleanable_dirty_ratio=1, min_compaction_lag_bytes=100)
    assert not verdict_on(state, log.segments, young, 61).due


CASES = [
    ({"max_compaction_lag_ms": 700}, a_state()),
    ({"delete_retention_ms": 500}, a_state(steps=STEPS)),
    ({"delete_retention_ms": 500}, a_state(steps=STEPS, held=HeldTombstones(4, 10))),
    ({"min_compaction_lag_ms": 700, "min_cleanable_dirty_ratio": 0}, a_state()),
    (
        {"min_compaction_lag_ms": 700, "min_compaction_lag_from": "commit", "min_cleanable_dirty_ratio": 0},
        a_state(committed=(CommittedEnd(10, 250),)),
    ),
    (RETAINED | {"retention_ms": 900}, a_state()),
    (RETAINED | {"retention_ms": 900, "min_cleanable_dirty_ratio": 0}, a_state(first_dirty_offset=10)),
    ({"cleanup_policy": "delete", "retention_ms": 900}, a_state()),
    (RETAINED | BESIDE | {"retention_ms": 900, "min_cleanable_dirty_ratio": 1}, a_state(first_dirty_offset=0)),
]


@pytest.mark.parametrize(("config", "state"), CASES)
def test_it_becomes_due_at_the_very_time_that_it_says(config, state):
    """C21, C28: a cleaner that sleeps until then finds it due, and a millisecond earlier not."""
    segments = (
        a_segment("old", 0, 9, min_timestamp_ms=3, max_timestamp_ms=77),
        a_segment("new", 9, 10, min_timestamp_ms=88, max_timestamp_ms=99),
    )
    settings = some_settings(**config)
    first = verdict_on(state, segments, settings, 100)
    assert not first.due and first.due_at_ms is not None
    assert verdict_on(state, segments, settings, first.due_at_ms).due
    assert not verdict_on(state, segments, settings, first.due_at_ms - 1).due


def test_a_deadline_is_named_before_anything_else():
    """C28, C29: it is what puts the log in front, also where segments can go whole."""
    assert "max.compaction.lag.ms" in judge(0, 1, max_compaction_lag_ms=1).reason
    both = judge(0, 1, max_compaction_lag_ms=1, **RETAINED)
    assert ("max.compaction.lag.ms" in both.reason, both.overdue_ms) == (True, 999)


def test_the_most_overdue_log_goes_first_then_the_dirtiest():
    """C29: one that is overdue by a millisecond goes before one that is all dirt."""
    dirty, half, clean = Dirtiness(0, 9, 0), Dirtiness(5, 5, 0), Dirtiness(9, 0, None)
    found = {
        "half": (half, Due(True, "")),
        "dirty": (dirty, Due(True, "")),
        "overdue": (clean, Due(True, "", overdue_ms=1)),
        "most overdue": (clean, Due(True, "", overdue_ms=2)),
    }
    logs = {name: Assessment(Horizon(9, "log end"), dirt, None, due) for name, (dirt, due) in found.items()}
    assert sorted(logs, key=lambda name: logs[name].priority) == ["most overdue", "overdue", "dirty", "half"]
