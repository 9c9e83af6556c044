"""What a plan looks at, what it passes over, and why (C14, C16, C30, C41)."""

from __future__ import annotations

import pytest

from lithify.compaction.planner import FOOTER_BYTES, plan_log
from lithify.compaction.rules import Cause
from lithify.model.log import LogState, TombstoneStep
from support.builders import a_log, a_segment, some_settings


def paths(segments):
    return [segment.path for segment in segments]


def looked_at(text, *, dirty_from, steps=(), start=0, now_ms=0, **config):
    log = a_log(text)
    return paths(
        log.plan(log.state(dirty_from=dirty_from, steps=steps, start=start), now_ms=now_ms, **config).looked_at
    )


def test_the_first_round_looks_at_everything():
    """C38: a round always covers [S, H) whole."""
    plan = a_log("a=1 | b=2 | c=3").plan()
    assert (paths(plan.clean), paths(plan.dirty), paths(plan.scanned)) == ([], ["s0", "s1", "s2"], ["s0", "s1", "s2"])
    assert plan.moves and not plan.is_idle


def test_segments_are_distinguished_by_the_first_dirty_offset():
    """C14."""
    log = a_log("a=1 | b=2 | c=3")
    plan = log.plan(log.state(dirty_from=1))
    assert (paths(plan.clean), paths(plan.dirty), paths(plan.sources)) == (["s0"], ["s1", "s2"], ["s0", "s1", "s2"])


def test_segments_at_or_above_the_horizon_are_no_part_of_it():
    """C14."""
    plan = a_log("a=1!0 | a=2!90 | a=3!0").plan(now_ms=100, min_compaction_lag_ms=20)
    assert paths(plan.sources) == ["s0"]
    assert plan.horizon.offset == 1


def test_a_segment_on_both_sides_of_the_first_dirty_offset_is_dirty():
    """C14: so its records above D are compared as new ones."""
    log = a_log("a=1 b=2 | c=3")
    plan = log.plan(log.state(start=1))
    assert (paths(plan.clean), paths(plan.dirty)) == ([], ["s0", "s1"])


def test_clean_segments_are_looked_at_where_dirty_keys_may_be():
    """C38: a clean record can only lose to a dirty one of its key."""
    assert looked_at("a=1 c=2 | d=1 f=2 | x=1 z=2 | b=3 e=3", dirty_from=6) == ["s0", "s1"]
    assert looked_at("a=1 c=2 | d=1 f=2 | x=1 z=2 | c=3", dirty_from=6) == ["s0"]
    assert looked_at("a=1 c=2 | d=1 f=2 | x=1 z=2 | zz=3", dirty_from=6) == []


def test_between_two_dirty_segments_a_clean_one_can_be_passed_over():
    """C38: their keys are asked for as ranges, not from the smallest to the largest of all."""
    assert looked_at("m=1 n=2 | a=3 b=3 | x=3 z=3", dirty_from=2) == []


def test_bounds_of_long_keys_may_be_cut():
    """C12: two keys with the same first bytes are not told apart by cut bounds, so both are looked at."""
    clean = a_segment("clean", 0, 1, min_key=b"k" * 16, max_key=b"k" * 15 + b"l")
    dirty = a_segment("dirty", 1, 2, min_key=b"k" * 16, max_key=b"k" * 15 + b"l")
    state = LogState(0, first_dirty_offset=1, log_end_offset=2)
    assert paths(plan_log(state, (clean, dirty), some_settings(), 0).looked_at) == ["clean"]


def test_unknown_bounds_may_hold_any_key():
    """C12: where nothing is known of the keys, nothing is passed over."""
    state = LogState(0, first_dirty_offset=1, log_end_offset=2)
    known = {"min_key": b"a", "max_key": b"c"}
    unknown = {"min_key": b"", "max_key": None}
    for of_clean, of_dirty in ((known, unknown), (unknown, known), (unknown, unknown)):
        segments = (a_segment("clean", 0, 1, **of_clean), a_segment("dirty", 1, 2, **of_dirty))
        assert paths(plan_log(state, segments, some_settings(), 0).looked_at) == ["clean"]


def test_dirty_segments_without_keys_supersede_nothing():
    """C16."""
    assert looked_at("a=1 | ·=2", dirty_from=1, null_key="retain") == []


@pytest.mark.parametrize(("null_key", "expected"), [("retain", []), ("drop", ["s1"]), ("reject", ["s1"])])
def test_keyless_records_below_are_looked_for_once_they_have_to_go(null_key, expected):
    """C16: also those that were there before the setting changed, with nothing new in the log."""
    assert looked_at("a=1 | ·=2 b=3", dirty_from=3, null_key=null_key) == expected


STEPS = (TombstoneStep(2, 1000, 1), TombstoneStep(4, 2000, 1))
CLEAN = "a=1 b=∅ | c=1 d=∅ | e=1"


@pytest.mark.parametrize(("now_ms", "expected"), [(1099, []), (1100, ["s0"]), (2100, ["s0", "s1"])])
def test_segments_with_expired_tombstones_are_looked_at(now_ms, expected):
    """C18, C21: with nothing new in the log, the clock alone makes work."""
    found = looked_at(CLEAN, dirty_from=5, steps=STEPS, now_ms=now_ms, delete_retention_ms=100)
    assert found == expected


def test_without_a_tombstone_left_under_the_expired_steps_nothing_is_looked_for():
    """C41: the steps know that there is none, so an idle round reads nothing."""
    bare = (TombstoneStep(2, 1000, 0), TombstoneStep(4, 2000, 1))
    assert looked_at(CLEAN, dirty_from=5, steps=bare, now_ms=1100, delete_retention_ms=100) == []


def test_empty_values_are_looked_for_where_they_are_tombstones():
    """C17, C18."""
    steps = (TombstoneStep(2, 1000, 1),)
    for empty_value, expected in (("value", []), ("tombstone", ["s0"])):
        found = looked_at(
            "a=1 b='' | c=1", dirty_from=3, steps=steps, now_ms=9999, delete_retention_ms=1, empty_value=empty_value
        )
        assert found == expected


def test_with_a_retention_of_zero_a_new_tombstone_makes_old_ones_of_other_keys_go_as_well():
    """C18: what an earlier setting protected goes in the next round."""
    steps = (TombstoneStep(2, 1000, 1),)
    assert looked_at("a=1 b=∅ | x=1", dirty_from=2, steps=steps, now_ms=1000, delete_retention_ms=0) == ["s0"]


def test_segments_that_reach_below_the_log_start_are_looked_at():
    """C26: so that what is below S leaves the storage; what lies below it whole goes unread."""
    log = a_log("a=1 | b=2 c=3 | d=4")
    plan = log.plan(log.state(dirty_from=4, start=2))
    assert (paths(plan.gone), paths(plan.looked_at), paths(plan.sources)) == (["s0"], ["s1"], ["s1", "s2"])
    assert plan.unread_losers == {Cause.BELOW_START: 1}


def test_a_plan_without_work_is_idle():
    """C41."""
    log = a_log("a=1 | b=2")
    plan = log.plan(log.state(dirty_from=2))
    assert plan.is_idle
    assert plan.bounds(1).segments_rewritten == plan.bounds(1).bytes_read == plan.bounds(1).bytes_written == 0


def test_the_rules_carry_the_settings():
    """C14, C16, C17, C18."""
    log = a_log("a=1 | b=2")
    steps = (TombstoneStep(1, 5, 1),)
    plan = log.plan(
        log.state(dirty_from=1, steps=steps),
        now_ms=15,
        null_key="retain",
        empty_value="tombstone",
        delete_retention_ms=10,
    )
    rules = plan.rules
    assert (rules.log_start, rules.first_dirty, rules.horizon) == (0, 1, 2)
    assert (rules.keep_keyless, rules.empty_is_tombstone, rules.tombstones_expire_below) == (True, True, 1)


def test_bounds_count_every_segment_that_may_be_touched_and_every_read_of_the_keys():
    """C30: upper bounds; the keys are read once for each range of them."""
    log = a_log("a=1 | z=2 | a=3")
    plan = log.plan(log.state(dirty_from=2))
    sizes = [s.size_bytes for s in log.segments]
    scans = [log.segments[0].scan_bytes, log.segments[2].scan_bytes]  # z is passed over
    bounds = plan.bounds(3)
    assert bounds.segments_rewritten == 3  # it may still be merged
    assert bounds.bytes_read == sum(sizes) + 3 * sum(scans)
    assert bounds.bytes_written == sum(sizes) + 3 * FOOTER_BYTES


def test_a_full_segment_that_is_passed_over_is_no_cost():
    """C30, C42: it has no loser, and no room for another beside it; a round needs no space for it."""
    log = a_log("a=" + "x" * 1100 + " | b=1 | z=3")
    plan = log.plan(log.state(dirty_from=2), segment_bytes=1024)
    assert paths(plan.looked_at) == []
    assert plan.bounds(1).segments_rewritten == 2
    assert plan.bounds(1).bytes_written == sum(s.size_bytes + FOOTER_BYTES for s in log.segments[1:])
