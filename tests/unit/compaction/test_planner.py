"""What a plan looks at, what it passes over, and why (C12, C14, C16 to C21, C24, C26, C30, C33, C34, C38, C43, C53)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.segment import Mask, volume_of
from lithify.model.topic.log import HeldTombstones, LogState, TombstoneStep, View
from lithify.rules.compaction.plan_bounds import FOOTER_BYTES, PlanBounds, bounds_of
from lithify.rules.compaction.planner import plan_log
from lithify.rules.compaction.survivor_rules import Cause
from support.builders import a_log, a_segment, some_settings
from support.tables import cases_of

RETAINED = {"cleanup_policy": "compact,delete", "retention_ms": 50}
BESIDE = {"compaction_mode": "side-by-side"}
BY_TIME = {"compaction_strategy": "timestamp"}
STEPS = (TombstoneStep(2, 1000, 1), TombstoneStep(4, 2000, 1))


def paths(segments):
    return " ".join(segment.path for segment in segments)


CLEAN_KEYS = "a=1 c=2 | d=1 f=2 | x=1 z=2"
CLEAN_DELETES = "a=1 b=∅ | c=1 d=∅ | e=1"
ONE_DELETE = {"steps": STEPS[:1]}
OLD_VALUES = "a=1!10 b=1!99 | c=1!21 d=1!99 | e=1!99"
LOOKS = {
    "C38: clean segments where dirty keys may be": [
        (CLEAN_KEYS + " | b=3 e=3", 6, {}, "s0 s1"),
        (CLEAN_KEYS + " | c=3", 6, {}, "s0"),
        (CLEAN_KEYS + " | zz=3", 6, {}, ""),
    ],
    "C38: dirty keys are ranges, not one from the smallest to the largest": [
        ("m=1 n=2 | a=3 b=3 | x=3 z=3", 2, {}, ""),
    ],
    "C16: dirty segments without keys supersede nothing": [
        ("a=1 | ·=2", 1, {"null_key": "retain"}, ""),
    ],
    "C16: clean keyless records once they have to go, with nothing new in the log": [
        ("a=1 | ·=2 b=3", 3, {"null_key": "retain"}, ""),
        ("a=1 | ·=2 b=3", 3, {"null_key": "drop"}, "s1"),
        ("a=1 | ·=2 b=3", 3, {"null_key": "reject"}, "s1"),
    ],
    "C18, C21: expired tombstones, with nothing new in the log": [
        (CLEAN_DELETES, 5, {"steps": STEPS, "now_ms": 1099, "delete_retention_ms": 100}, ""),
        (CLEAN_DELETES, 5, {"steps": STEPS, "now_ms": 1100, "delete_retention_ms": 100}, "s0"),
        (CLEAN_DELETES, 5, {"steps": STEPS, "now_ms": 2100, "delete_retention_ms": 100}, "s0 s1"),
    ],
    "C41: not where the expired steps have none left": [
        (
            CLEAN_DELETES,
            5,
            {"steps": (TombstoneStep(2, 1000, 0), STEPS[1]), "now_ms": 1100, "delete_retention_ms": 100},
            "",
        ),
    ],
    "C17, C18: empty values where they delete": [
        ("a=1 b='' | c=1", 3, ONE_DELETE | {"now_ms": 9999, "delete_retention_ms": 1}, ""),
        (
            "a=1 b='' | c=1",
            3,
            ONE_DELETE | {"now_ms": 9999, "delete_retention_ms": 1, "empty_value": "tombstone"},
            "s0",
        ),
    ],
    "C18: with a retention of 0 also those that an earlier setting protected": [
        ("a=1 b=∅ | x=1", 2, ONE_DELETE | {"now_ms": 1000, "delete_retention_ms": 0}, "s0"),
    ],
    "C24: records past retention, by their oldest timestamp; an age equal to it is not past it": [
        (OLD_VALUES, 5, RETAINED | {"now_ms": 60}, ""),
        (OLD_VALUES, 5, RETAINED | {"now_ms": 61}, "s0"),
        (OLD_VALUES, 5, RETAINED | {"now_ms": 72}, "s0 s1"),
        ("a=1!10 b=1!99", 2, {"now_ms": 100, "cleanup_policy": "compact", "retention_ms": 50}, ""),
    ],
}


@pytest.mark.parametrize(
    ("text", "dirty_from", "given", "expected"),
    cases_of(LOOKS),
)
def test_a_plan_looks_only_at_clean_segments_that_may_have_a_loser(text, dirty_from, given, expected):
    log, config = a_log(text), dict(given)
    state = log.state(dirty_from=dirty_from, steps=config.pop("steps", ()))
    assert paths(log.plan(state, **config).looked_at) == expected


def test_segments_are_distinguished_by_the_first_dirty_offset():
    """C14, C38: one on both sides of it is dirty."""
    log = a_log("a=1 b=2 | b=2 | c=3")
    for dirty_from, clean, dirty in ((0, "", "s0 s1 s2"), (1, "", "s0 s1 s2"), (2, "s0", "s1 s2")):
        plan = log.plan(log.state(dirty_from=dirty_from))
        assert (paths(plan.clean), paths(plan.dirty), paths(plan.sources)) == (clean, dirty, "s0 s1 s2")
        assert plan.moves and not plan.is_idle


def test_segments_at_or_above_the_horizon_are_no_part_of_it():
    """C14."""
    plan = a_log("a=1!0 | a=2!90 | a=3!0").plan(now_ms=100, min_compaction_lag_ms=20)
    assert (paths(plan.sources), plan.horizon.offset) == ("s0", 1)


@pytest.mark.parametrize(
    ("of_clean", "of_dirty"),
    [
        ((b"k" * 16, b"k" * 15 + b"l"), (b"k" * 16, b"k" * 15 + b"l")),  # cut: two keys may have the same first bytes
        ((b"a", b"c"), (b"", None)),
        ((b"", None), (b"a", b"c")),
        ((b"", None), (b"", None)),
    ],
)
def test_bounds_that_are_cut_or_unknown_may_hold_any_key(of_clean, of_dirty):
    """C12: so that nothing is passed over."""
    state = LogState(0, first_dirty_offset=1, log_end_offset=2)
    clean, dirty = (
        a_segment(path, offset, offset + 1, min_key=low, max_key=high)
        for path, offset, (low, high) in (("clean", 0, of_clean), ("dirty", 1, of_dirty))
    )
    assert paths(plan_log(state, (clean, dirty), some_settings(), 0).looked_at) == "clean"


def test_segments_that_reach_below_the_log_start_are_looked_at():
    """C26: so that what is below S leaves the storage; what lies below it whole goes unread."""
    log = a_log("a=1 | b=2 c=3 | d=4")
    plan = log.plan(log.state(dirty_from=4, start=2))
    assert (paths(plan.gone), paths(plan.looked_at), paths(plan.sources)) == ("s0", "s1", "s1 s2")
    assert plan.unread_losers == {Cause.BELOW_START: 1}


def test_the_rules_carry_the_settings():
    """C14, C16, C17, C18."""
    log = a_log("a=1 | b=2")
    config = {"null_key": "retain", "empty_value": "tombstone", "delete_retention_ms": 10}
    rules = log.plan(log.state(dirty_from=1, steps=(TombstoneStep(1, 5, 1),)), now_ms=15, **config).rules
    assert (rules.log_start, rules.horizon) == (0, 2)
    assert (rules.keep_keyless, rules.empty_is_tombstone, rules.tombstones_expire_below) == (True, True, 1)


def test_bounds_count_every_segment_that_may_be_touched_and_every_read_of_the_keys():
    """C30: upper bounds; the keys are read once for each range of them. Without work there is none (C41)."""
    log = a_log("a=1 | z=2 | a=3")
    plan = log.plan(log.state(dirty_from=2))
    sizes = [s.size_bytes for s in log.segments]
    scans = [log.segments[0].scan_bytes, log.segments[2].scan_bytes]  # z is passed over
    bounds = bounds_of(plan, 3)
    assert bounds.segments_rewritten == 3  # it may still be merged
    assert bounds.bytes_read == sum(sizes) + 3 * sum(scans)
    assert bounds.bytes_written == sum(sizes) + 3 * FOOTER_BYTES
    idle = log.plan(log.state(dirty_from=3))
    assert idle.is_idle
    assert bounds_of(idle, 1) == PlanBounds(0, 0, 0)


def test_masks_count_in_the_bounds_as_often_as_keys_are_read():
    """C30: they are read with the keys, and once more where the segment is rewritten."""
    log = a_log("a=1 b=1 | a=3")
    segments = (replace(log.segments[0], records=1, mask=Mask("m", 1000, 1)), log.segments[1])
    plain, masked = (plan_log(log.state(dirty_from=2), some, some_settings(), 0) for some in (log.segments, segments))
    assert bounds_of(masked, 3).bytes_read == bounds_of(plain, 3).bytes_read + 4 * 1000


@pytest.mark.parametrize("config", [BY_TIME, {"compaction_strategy": "header", "compaction_strategy_header": "v"}])
def test_headers_and_timestamps_count_in_the_bounds_where_they_decide(config):
    """C30: they have no size of their own in the metadata."""
    log = a_log("a=1 | z=2 | a=3")
    sizes = [s.size_bytes for s in log.segments]
    found = bounds_of(log.plan(log.state(dirty_from=2), **config), 2)
    assert found.bytes_read == sum(sizes) + 2 * (sizes[0] + sizes[2])


def test_a_full_segment_that_is_passed_over_is_no_cost():
    """C30, C42: it has no loser, and no room for another beside it; a round needs no space for it."""
    log = a_log("a=" + "x" * 1100 + " | b=1 | z=3")
    plan = log.plan(log.state(dirty_from=2), segment_bytes=1024)
    assert paths(plan.looked_at) == ""
    assert bounds_of(plan, 1).segments_rewritten == 2
    assert bounds_of(plan, 1).bytes_written == sum(s.size_bytes + FOOTER_BYTES for s in log.segments[1:])


def test_retention_is_applied_first_and_moves_the_log_start():
    """C24, C26, C42: what goes whole is neither read nor compared, and its losers are told by cause."""
    log = a_log("a=1!1 | b=1!2 | a=2!90 | ·=1!90")
    plan = log.plan(now_ms=100, **RETAINED)
    assert (paths(plan.gone), paths(plan.scanned), plan.log_start) == ("s0 s1", "s2 s3", 2)
    assert (plan.rules.log_start, plan.rules.values_expire_before_ms) == (2, 50)
    assert plan.unread_losers == {Cause.PAST_RETENTION: 2}
    deleted = a_log("a=1!1 | b=1!2 c=1!2 | d=1!90")
    found = deleted.plan(deleted.state(start=1), now_ms=100, **RETAINED).unread_losers
    assert found == {Cause.BELOW_START: 1, Cause.PAST_RETENTION: 2}


def test_the_horizon_is_that_of_what_retention_leaves():
    """C14, C24: D moves with S, so it is never above H."""
    log = a_log("a=1!1 | b=1!2 | c=1!90")
    plan = log.plan(now_ms=100, min_compaction_lag_ms=40, **RETAINED)
    assert (plan.log_start, plan.horizon.offset, plan.dirty, plan.moves) == (2, 2, (), True)


def test_what_waits_above_the_horizon_is_asked_before_a_tombstone_goes():
    """C20: under C10, and only where one may go."""
    log = a_log("a=∅!9 | b=1!9 | a=1!5 | a=2!99")
    state = log.state(dirty_from=1, steps=(TombstoneStep(1, 1000, 1),))
    config = {"min_compaction_lag_bytes": 40, "delete_retention_ms": 10}
    plan = log.plan(state, now_ms=1010, **BY_TIME, **config)
    assert (plan.horizon.offset, paths(plan.above_horizon), plan.expires_tombstones) == (2, "s2 s3", True)
    young = log.plan(state, now_ms=1009, **BY_TIME, **config)
    assert (young.above_horizon, young.expires_tombstones) == ((), False)
    assert log.plan(state, now_ms=1010, **config).above_horizon == ()


def test_a_new_tombstone_without_retention_asks_what_waits_as_well():
    """C20, C18."""
    config = {"min_compaction_lag_bytes": 20, "delete_retention_ms": 0, **BY_TIME}
    assert paths(a_log("a=∅!9 | a=1!5").plan(**config).above_horizon) == "s1"
    assert a_log("a=1!9 | a=1!5").plan(**config).above_horizon == ()


@pytest.mark.parametrize(
    ("drawn", "config", "expire_below", "looks_at"),
    [
        ("a=∅ | b=1", {}, 1, "s0 s1"),
        ("a=∅ □=x | b=1", {}, 0, "s1"),
        ("a=∅ | □=x | b=1", {}, 0, "s1 s2"),
        ("a=∅ ·=x | b=1", {"null_key": "retain"}, 2, "s0 s1"),
        ("a=∅ | b=1 | □=x", {"min_compaction_lag_bytes": 20}, 1, "s0 s1"),
        ("a=∅ | b=1 | □=x", {"min_compaction_lag_bytes": 20, **BY_TIME}, 0, "s1"),
        ("□=x a=∅ | b=1", {"start": 1}, 0, "s0 s1"),  # the segment says only how many it has
        ("□=x | a=∅ | b=1", {"start": 1, "covered": 2}, 2, "s1 s2"),
        ("a=∅ □a=x | b=1", {}, 2, "s0 s1"),  # chunks hold what is of their keys
        ("a=∅ □a=x | □=x", {}, 0, "s1"),
        ("a=∅ □a=x □=x | b=1", {}, 0, "s1"),
        ("a=∅ | b=1 | □b=x", {"min_compaction_lag_bytes": 20, **BY_TIME}, 1, "s0 s1"),
    ],
)
def test_no_tombstone_expires_while_a_whole_entry_is_stored(drawn, config, expire_below, looks_at):
    """C53: nor is a clean segment read for it."""
    log, (start, covered) = a_log(drawn), (config.get("start", 0), config.get("covered", 0))
    covered = covered or len(log.contents[0])
    state = log.state(dirty_from=covered, start=start, steps=(TombstoneStep(covered, 0, 1),))
    plan = log.plan(state, now_ms=10, delete_retention_ms=1, **{k: v for k, v in config.items() if "_" in k})
    assert (plan.rules.tombstones_expire_below, paths(plan.scanned)) == (expire_below, looks_at)


@pytest.mark.parametrize(
    ("drawn", "covered", "config", "asked"),
    [
        ("□a=x | a=∅ | b=1", 2, {}, "s0"),
        ("□a=x | a=∅ | □b=1", 2, {}, "s0 s2"),
        ("□a=x | a=∅ | b=∅", 2, {"now_ms": 0}, ""),
        ("□a=x | c=1 | b=1", 2, {}, ""),
        ("□a=x | c=1 | b=∅", 2, {"delete_retention_ms": 0}, "s0"),
        ("a=∅ | b=1 | □b=x", 1, {"min_compaction_lag_bytes": 20, **BY_TIME}, ""),
    ],
)
def test_chunks_are_read_where_a_tombstone_may_expire(drawn, covered, config, asked):
    """C53, C38: by their metadata, also in a segment that no record is looked for in."""
    log = a_log(drawn)
    state = log.state(dirty_from=covered, steps=(TombstoneStep(covered, 0, 1),))
    plan = log.plan(state, **{"now_ms": 10, "delete_retention_ms": 1} | config)
    assert paths(plan.chunks) == asked
    assert plan.key_bytes >= sum(s.size_bytes for s in plan.chunks)


@pytest.mark.parametrize(
    ("drawn", "held", "expiring"),
    [
        ("□a=x a=∅ | b=1", HeldTombstones(2, 2, 1, waits=False), False),
        ("□a=x a=∅ | b=1", HeldTombstones(2, 2, 1, waits=True), True),  # the horizon has moved
        ("□a=x a=∅ | b=1", HeldTombstones(2, 2, 2, waits=False), True),  # a chunk has gone
        ("□a=x a=∅ | □b=1", HeldTombstones(2, 2, 2, waits=False), True),  # and another has come
        ("□a=x a=∅ | b=1", HeldTombstones(1, 2, 1, waits=False), True),  # others have expired
    ],
)
def test_what_chunks_hold_is_looked_for_once_one_of_them_has_gone(drawn, held, expiring):
    """C53, C21."""
    log = a_log(drawn)
    state = replace(log.state(dirty_from=2, steps=(TombstoneStep(2, 0, 1),)), held=held)
    assert log.plan(state, now_ms=10, delete_retention_ms=1).expires_tombstones is expiring


@pytest.mark.parametrize(
    ("config", "start", "looks_at"),
    [
        ({}, 1, "s0 s1"),
        ({}, 2, "s1"),  # the segment goes whole
        ({}, 0, ""),
        ({"compaction_mode": "side-by-side"}, 1, "s0 s1"),
        ({"compaction_mode": "side-by-side"}, 2, "s1"),
        ({"cleanup_policy": "compact,delete", "retention_ms": 100}, 0, "s0 s1"),  # the chunk is past retention
    ],
)
def test_a_round_that_may_remove_a_chunk_looks_for_what_it_held(config, start, looks_at):
    """C53, C26, C24: in other segments too."""
    log = a_log("□a=x!5 b=1!995 | a=∅!995 c=1!995")
    state = replace(
        log.state(start=start, dirty_from=4, steps=(TombstoneStep(4, 0, 1),)),
        held=HeldTombstones(4, 4, 1, waits=False),
        deleted_below=start,
    )
    view = log.segments if "compaction_mode" in config else ()
    state = replace(state, view=View(volume_of(view))) if view else state
    plan = log.plan(state, view=view, **{"now_ms": 1000, "delete_retention_ms": 1} | config)
    assert paths(plan.looked_at) == looks_at
    assert plan.expires_tombstones == bool(looks_at)


def test_a_view_has_its_entries_when_the_backlog_has_lost_them():
    """C53, C33."""
    log, view = a_log("b=1@2"), a_log("□=x a=∅").segments
    state = replace(log.state(dirty_from=2, start=2, steps=(TombstoneStep(2, 0, 1),)), view=View())
    sides = {"compaction_mode": "side-by-side", "delete_retention_ms": 0, "now_ms": 10}
    assert log.plan(state, view=view, **sides).rules.tombstones_expire_below == 0
    assert log.plan(state, view=a_log("a=∅").segments, **sides).rules.tombstones_expire_below == 3


@pytest.mark.parametrize(
    ("lag_bytes", "now_ms", "looks_at"), [(20, 1010, ""), (0, 1010, "s0"), (20, 1510, "s0")], ids=str
)
def test_held_tombstones_are_looked_for_once_the_horizon_moves_or_others_expire(lag_bytes, now_ms, looks_at):
    """C20, C41: before that a round would find the same."""
    log = a_log("a=∅!9 | b=1!9 | a=1!5")
    steps = (TombstoneStep(1, 1000, 1), TombstoneStep(2, 1500, 1))
    state = replace(log.state(dirty_from=2, steps=steps), held=HeldTombstones(1, 2))
    plan = log.plan(state, now_ms=now_ms, min_compaction_lag_bytes=lag_bytes, delete_retention_ms=10, **BY_TIME)
    assert plan.horizon.offset == (2 if lag_bytes else 3)
    assert (plan.is_idle, plan.expires_tombstones, paths(plan.looked_at)) == (not looks_at, bool(looks_at), looks_at)


def test_steps_that_count_tombstones_where_no_segment_can_hold_one_make_work():
    """C21, C41: segments go unread, so only a round can tell that the count is none."""
    log = a_log("b=1 | c=1")
    plan = log.plan(log.state(dirty_from=2, steps=(TombstoneStep(2, 0, 1),)), now_ms=10, delete_retention_ms=1)
    assert (plan.looked_at, plan.expires_tombstones, plan.is_idle) == ((), True, False)


def test_after_a_change_everything_below_the_horizon_is_new():
    """C43: nothing is taken for judged; the round covers even if D stays where it is."""
    log = a_log("a=1 | b='' | c=1")
    plan = log.plan(replace(log.state(dirty_from=3), uncovered=True), empty_value="tombstone")
    assert (paths(plan.clean), paths(plan.dirty)) == ("", "s0 s1 s2")
    assert plan.moves and not plan.is_idle


def test_a_required_round_runs_with_nothing_to_look_at():
    """C26, C43: so that it is required no more."""
    log = a_log("a=1 | b=2")
    assert not log.plan(replace(log.state(dirty_from=2), round_required="a setting changed")).is_idle


def test_side_by_side_a_round_reads_the_view_and_the_backlog_from_the_first_dirty_offset_on():
    """C33, C34: never the whole backlog again, but for the first view."""
    log = a_log("a=1 | b=1 | a=2 | b=2")
    first = log.plan(**BESIDE)
    assert (first.view, first.clean, paths(first.dirty)) == ((), (), "s0 s1 s2 s3")
    state = replace(log.state(dirty_from=3), view=View())
    for max_key, looks_at in ((b"b", "v0"), (b"a", "")):
        plan = log.plan(state, view=(a_segment("v0", 1, 3, min_key=b"a", max_key=max_key),), **BESIDE)
        assert (paths(plan.clean), paths(plan.dirty), paths(plan.looked_at)) == ("v0", "s3", looks_at)


def test_trimming_the_backlog_takes_nothing_from_the_view():
    """C33: neither whole segments of it nor single records; only `delete-records` does (C26)."""
    log = a_log("a=1!1 | b=1!2 | c=1!90")
    view = log.segments[:2]
    state = replace(log.state(dirty_from=2), view=View())
    plan = log.plan(state, now_ms=100, view=view, **RETAINED, **BESIDE)
    assert (paths(plan.gone), paths(plan.clean), plan.view_gone, plan.unread_losers) == ("s0 s1", "s0 s1", (), {})
    assert (plan.rules.log_start, plan.rules.values_expire_before_ms) == (0, None)
    deleted = log.plan(replace(state, log_start_offset=1, deleted_below=1), view=view, **BESIDE)
    assert (paths(deleted.view_gone), paths(deleted.clean), deleted.rules.log_start) == ("s0", "s1", 1)
    assert deleted.unread_losers == {Cause.BELOW_START: 1}


def test_a_round_side_by_side_trims_what_it_covers():
    """C33, C41: its view has the records, so that a second round finds nothing; at or above H it waits."""
    log = a_log("a=1!1 | b=1!2 | c=1!3 | d=1!4")
    plan = log.plan(now_ms=100, **RETAINED, **BESIDE, min_compaction_lag_bytes=20)
    assert (plan.horizon.offset, paths(plan.gone), plan.log_start) == (3, "s0 s1 s2", 3)
    assert paths(plan.dirty) == "s0 s1 s2"
