"""What a plan makes of retention, waiting records, changed settings and views (C20, C24, C26, C33, C34, C43)."""

from __future__ import annotations

from dataclasses import replace

from lithify.compaction.rules import Cause
from lithify.model.log import HeldTombstones, TombstoneStep, View
from support.builders import a_log, a_segment


def paths(segments):
    return [segment.path for segment in segments]


def looked_at(text, *, dirty_from, now_ms=0, **config):
    log = a_log(text)
    return paths(log.plan(log.state(dirty_from=dirty_from), now_ms=now_ms, **config).looked_at)


RETAINED = {"cleanup_policy": "compact,delete", "retention_ms": 50}
BESIDE = {"compaction_mode": "side-by-side"}


def test_retention_is_applied_first_and_moves_the_log_start():
    """C24: what goes whole is neither read nor compared; S and D move behind it."""
    log = a_log("a=1!1 | b=1!2 | a=2!90 | ·=1!90")
    plan = log.plan(now_ms=100, **RETAINED)
    assert (paths(plan.gone), paths(plan.scanned), plan.log_start) == (["s0", "s1"], ["s2", "s3"], 2)
    assert (plan.rules.log_start, plan.rules.first_dirty, plan.rules.values_expire_before_ms) == (2, 2, 50)
    assert plan.unread_losers == {Cause.PAST_RETENTION: 2}


def test_losers_below_the_log_start_are_distinguished_from_those_past_retention():
    """C24, C26, C42."""
    log = a_log("a=1!1 | b=1!2 c=1!2 | d=1!90")
    plan = log.plan(log.state(start=1), now_ms=100, **RETAINED)
    assert plan.unread_losers == {Cause.BELOW_START: 1, Cause.PAST_RETENTION: 2}


def test_the_horizon_is_that_of_what_retention_leaves():
    """C14, C24: D moves with S, so it is never above H."""
    log = a_log("a=1!1 | b=1!2 | c=1!90")
    plan = log.plan(now_ms=100, min_compaction_lag_ms=40, **RETAINED)
    assert (plan.log_start, plan.horizon.offset, plan.dirty, plan.moves) == (2, 2, (), True)


def test_clean_segments_with_records_past_retention_are_looked_at():
    """C24: as their oldest timestamp tells, with nothing new in the log; an age equal to it is not past it."""
    for now_ms, expected in ((60, []), (61, ["s0"]), (72, ["s0", "s1"])):
        assert looked_at("a=1!10 b=1!99 | c=1!21 d=1!99 | e=1!99", dirty_from=5, now_ms=now_ms, **RETAINED) == expected
    assert looked_at("a=1!10 b=1!99", dirty_from=2, now_ms=100, cleanup_policy="compact", retention_ms=50) == []


def test_what_waits_above_the_horizon_is_asked_before_a_tombstone_goes():
    """C20: under C10, and only where one may go."""
    log = a_log("a=∅!9 | b=1!9 | a=1!5 | a=2!99")
    steps = (TombstoneStep(1, 1000, 1),)
    state = log.state(dirty_from=1, steps=steps)
    config = {"min_compaction_lag_bytes": 40, "delete_retention_ms": 10}
    plan = log.plan(state, now_ms=1010, compaction_strategy="timestamp", **config)
    assert (plan.horizon.offset, paths(plan.waiting), plan.expires_tombstones) == (2, ["s2", "s3"], True)
    young = log.plan(state, now_ms=1009, compaction_strategy="timestamp", **config)
    assert (young.waiting, young.expires_tombstones) == ((), False)
    assert log.plan(state, now_ms=1010, **config).waiting == ()


def test_a_new_tombstone_without_retention_asks_what_waits_as_well():
    """C20, C18."""
    log = a_log("a=∅!9 | a=1!5")
    config = {"min_compaction_lag_bytes": 20, "delete_retention_ms": 0, "compaction_strategy": "timestamp"}
    assert paths(log.plan(**config).waiting) == ["s1"]
    assert a_log("a=1!9 | a=1!5").plan(**config).waiting == ()


HELD = a_log("a=∅!9 | b=1!9 | a=1!5")
HELD_STEPS = (TombstoneStep(1, 1000, 1), TombstoneStep(2, 1500, 1))


def held_plan(*, below=1, horizon=2, now_ms=1010, lag_bytes=20, steps=HELD_STEPS):
    state = replace(HELD.state(dirty_from=2, steps=steps), held=HeldTombstones(below, horizon))
    config = {"min_compaction_lag_bytes": lag_bytes, "delete_retention_ms": 10, "compaction_strategy": "timestamp"}
    return HELD.plan(state, now_ms=now_ms, **config)


def test_held_tombstones_are_not_looked_for_again_while_the_horizon_stands():
    """C20, C41: a round would find the same."""
    plan = held_plan()
    assert plan.horizon.offset == 2
    assert (plan.is_idle, plan.expires_tombstones) == (True, False)


def test_held_tombstones_are_looked_for_once_the_horizon_moves_or_others_expire():
    """C20."""
    assert held_plan(lag_bytes=0).expires_tombstones
    assert paths(held_plan(lag_bytes=0).looked_at) == ["s0"]
    others = held_plan(now_ms=1510)
    assert (others.horizon.offset, others.expires_tombstones, paths(others.looked_at)) == (2, True, ["s0"])


def test_steps_that_count_tombstones_where_no_segment_can_hold_one_make_work():
    """C21, C41: segments go unread, so only a round can tell that the count is none."""
    log = a_log("b=1 | c=1")
    plan = log.plan(log.state(dirty_from=2, steps=(TombstoneStep(2, 0, 1),)), now_ms=10, delete_retention_ms=1)
    assert (plan.looked_at, plan.expires_tombstones, plan.is_idle) == ((), True, False)


def test_after_a_change_everything_below_the_horizon_is_new():
    """C43: nothing is taken for judged; the round covers even if D stays where it is."""
    log = a_log("a=1 | b='' | c=1")
    plan = log.plan(replace(log.state(dirty_from=3), uncovered=True), empty_value="tombstone")
    assert (paths(plan.clean), paths(plan.dirty)) == ([], ["s0", "s1", "s2"])
    assert plan.moves and not plan.is_idle


def test_a_required_round_runs_with_nothing_to_look_at():
    """C26, C43: so that it is required no more."""
    log = a_log("a=1 | b=2")
    assert not log.plan(replace(log.state(dirty_from=2), round_required="a setting changed")).is_idle


def test_a_first_round_side_by_side_makes_the_view_out_of_the_backlog():
    """C33."""
    log = a_log("a=1 | a=2")
    plan = log.plan(**BESIDE)
    assert (plan.view, plan.clean, paths(plan.dirty)) == ((), (), ["s0", "s1"])


def test_a_later_round_reads_the_view_and_the_backlog_from_the_first_dirty_offset_on():
    """C34: never the whole backlog again."""
    log = a_log("a=1 | b=1 | a=2 | b=2")
    view = (a_segment("v0", 1, 3, min_key=b"a", max_key=b"b"),)
    plan = log.plan(replace(log.state(dirty_from=3), view=View()), view=view, **BESIDE)
    assert (paths(plan.clean), paths(plan.dirty), paths(plan.looked_at)) == (["v0"], ["s3"], ["v0"])
    far = (replace(view[0], min_key=b"x", max_key=b"z"),)
    assert log.plan(replace(log.state(dirty_from=3), view=View()), view=far, **BESIDE).looked_at == ()


def test_trimming_the_backlog_takes_nothing_from_the_view():
    """C33: neither whole segments of it nor single records; only `delete-records` does (C26)."""
    log = a_log("a=1!1 | b=1!2 | c=1!90")
    view = log.segments[:2]
    state = replace(log.state(dirty_from=2), view=View())
    plan = log.plan(state, now_ms=100, view=view, **RETAINED, **BESIDE)
    assert (paths(plan.gone), paths(plan.clean), plan.view_gone, plan.unread_losers) == (
        ["s0", "s1"],
        ["s0", "s1"],
        (),
        {},
    )
    assert (plan.rules.log_start, plan.rules.values_expire_before_ms) == (0, None)
    deleted = log.plan(replace(state, log_start_offset=1, deleted_below=1), view=view, **BESIDE)
    assert (paths(deleted.view_gone), paths(deleted.clean), deleted.rules.log_start) == (["s0"], ["s1"], 1)
    assert deleted.unread_losers == {Cause.BELOW_START: 1}


def test_a_round_side_by_side_trims_what_it_covers():
    """C33, C41: its view has the records, so that a second round finds nothing; at or above H it waits."""
    log = a_log("a=1!1 | b=1!2 | c=1!3 | d=1!4")
    config = {**RETAINED, **BESIDE, "min_compaction_lag_bytes": 20}
    plan = log.plan(now_ms=100, **config)
    assert (plan.horizon.offset, paths(plan.gone), plan.log_start) == (3, ["s0", "s1", "s2"], 3)
    assert paths(plan.dirty) == ["s0", "s1", "s2"]


def test_headers_and_timestamps_count_in_the_bounds_where_they_decide():
    """C30: they have no size of their own in the metadata."""
    log = a_log("a=1 | z=2 | a=3")
    sizes = [s.size_bytes for s in log.segments]
    state = log.state(dirty_from=2)
    for config in (
        {"compaction_strategy": "timestamp"},
        {"compaction_strategy": "header", "compaction_strategy_header": "v"},
    ):
        assert log.plan(state, **config).bounds(2).bytes_read == sum(sizes) + 2 * (sizes[0] + sizes[2])
