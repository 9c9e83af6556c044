"""The state of a log after a round (C2, C18, C19, C27, C36, C41)."""

from __future__ import annotations

from dataclasses import replace

from lithify.compaction.decisions import CountedSegment, Drop, Keep, Rewrite
from lithify.compaction.outcome import After, applied, state_after
from lithify.model.log import LastRecord, TombstoneStep
from lithify.model.segment import volume_of
from support.builders import a_log, a_segment, some_settings
from support.topics.pure_rounds import PureLog, offsets

DAY = 86_400_000


def a_pure_log(*segments):
    log = PureLog()
    for text in segments:
        log.append(a_log(text, first_offset=log.state.log_end_offset).records)
    return log


def test_a_round_moves_the_first_dirty_offset_to_its_horizon():
    """C14, C27: and what was dirty is clean."""
    log = a_pure_log("a=1 b=2", "a=3")
    log.round(some_settings(), 7)
    assert (log.state.first_dirty_offset, log.state.log_end_offset, log.state.last_round_ms) == (3, 3, 7)
    assert (log.state.clean, log.state.dirty.records) == (volume_of(log.segments), 0)
    assert log.state.oldest_dirty_timestamp_ms is None


def test_what_lies_above_the_horizon_stays_dirty():
    """C14, C27."""
    log = a_pure_log("a=1!0", "a=2!90", "b=3!95")
    log.round(some_settings(min_compaction_lag_ms=20), 100)
    assert log.state.first_dirty_offset == 1
    assert (log.state.clean.records, log.state.dirty.records) == (1, 2)
    assert log.state.oldest_dirty_timestamp_ms == 90


def test_the_log_end_stays_where_it_is_when_the_last_record_goes():
    """C2, C36: and the last record is another, or none."""
    log = a_pure_log("a=1", "b=∅")
    log.round(some_settings(delete_retention_ms=0), 7)
    assert (log.state.log_end_offset, log.state.last_record) == (2, LastRecord(0, 0))
    log = a_pure_log("b=∅")
    log.round(some_settings(delete_retention_ms=0), 7)
    assert (log.state.log_end_offset, log.state.last_record, log.segments) == (1, None, ())


def test_the_new_step_carries_the_time_of_the_commit():
    """C18: the clock is read just before the commit, not when the round was planned."""
    log = a_pure_log("a=∅")
    log.round(some_settings(), 1000, commit_ms=1500)
    assert log.state.steps == (TombstoneStep(1, 1500, 1),)


def test_a_round_that_rewrites_nothing_covers_as_well():
    """C19: every round that moves D does."""
    log = a_pure_log("a=∅ b=1")
    outcome = log.round(some_settings(), 1000)
    assert not outcome.removed and outcome.changes
    assert log.state.steps == (TombstoneStep(2, 1000, 1),)


def test_tombstones_are_counted_under_the_step_that_covers_them():
    """C19, C21: when they go, for whatever reason, their step knows."""
    log = a_pure_log("a=∅ b=∅ c=1")
    log.round(some_settings(), 1000)
    log.append(a_log("b=2 d=∅", first_offset=3).records)
    log.round(some_settings(), 2000)
    assert log.state.steps == (TombstoneStep(3, 1000, 1), TombstoneStep(5, 2000, 1))
    log.round(some_settings(), 1000 + DAY)
    assert offsets(log.contents) == [2, 3, 4]
    assert log.state.steps == (TombstoneStep(5, 2000, 1),)


def test_a_tombstone_without_a_key_is_not_counted():
    """C16, C19."""
    log = a_pure_log("·=∅ a=∅")
    log.round(some_settings(null_key="retain"), 1000)
    assert log.state.steps == (TombstoneStep(2, 1000, 1),)


def test_a_step_stays_while_records_below_the_log_start_are_still_stored():
    """C19: else they would be counted against the next step when they go."""
    log = a_pure_log("a=∅ b=1")
    log.round(some_settings(), 1000)
    log.append(a_log("c=∅ d=1", first_offset=2).records)
    log.round(some_settings(), 2000, meanwhile=lambda: log.move_start(2))
    assert log.state.steps == (TombstoneStep(2, 1000, 1), TombstoneStep(4, 2000, 1))
    log.round(some_settings(), 3000)
    assert (offsets(log.contents), log.state.steps) == ([2, 3], (TombstoneStep(4, 2000, 1),))


def test_the_log_start_may_have_moved_past_the_horizon_meanwhile():
    """C44: S <= D holds after the commit as well."""
    log = a_pure_log("a=1 b=2")
    outcome = log.round(some_settings(), 0)
    passed = replace(log.state, log_start_offset=10, first_dirty_offset=10, log_end_offset=20)
    after = state_after(outcome, passed, After(log.segments, None), some_settings(), run_id="r", now_ms=0)
    assert (after.log_start_offset, after.first_dirty_offset) == (10, 10)


def test_what_goes_is_every_source_and_every_dropped_segment():
    """C6: the commit stops naming them, and no other."""
    kept, merged, also, dropped = (a_segment(f"s{i}", 10 * i, 10 * i + 10) for i in range(4))
    rewrite, new = Rewrite((CountedSegment(merged, 10), CountedSegment(also, 5))), a_segment("new", 10, 30)
    round_ = a_pure_log("a=1").round(some_settings(), 0)
    outcome = replace(round_, applied=applied((Keep(kept), rewrite, Drop(dropped)), {rewrite: (new,)}))
    assert (outcome.removed, outcome.added, outcome.result) == ((merged, also, dropped), (new,), (kept, new))


def test_a_second_round_finds_nothing_to_do():
    """C41."""
    log = a_pure_log("a=1 b=∅ a=2", "b=3 c=∅")
    settings = some_settings(delete_retention_ms=10)
    assert log.round(settings, 1000).changes
    before = log.state
    assert log.plan(settings, 1000).is_idle
    assert not log.round(settings, 1000).changes
    assert log.state == before
