"""The state of a log after a round, as far as no scenario draws it (C18 to C21, C24, C26, C33)."""

from __future__ import annotations

from dataclasses import replace

from lithify.model.log_arithmetic import measured
from lithify.model.segment import volume_of
from lithify.model.topic.log import HeldTombstones, LastRecord, TombstoneStep
from lithify.rules.compaction.round_commit import After, RoundTimes, state_after
from support.builders import draw, some_settings
from support.topics.pure_rounds import a_pure_log, offsets

BY_TIME = {"compaction_strategy": "timestamp", "delete_retention_ms": 100}
BESIDE = {"compaction_mode": "side-by-side", "delete_retention_ms": 100}
RETAINED = {"cleanup_policy": "compact,delete", "retention_ms": 5000, "delete_retention_ms": 100}


def test_the_new_step_carries_the_time_of_the_commit():
    """C18: the clock is read just before the commit, not when the round was planned."""
    log = a_pure_log("a=∅")
    log.round(some_settings(), 1000, commit_ms=1500)
    assert log.state.steps == (TombstoneStep(1, 1500, 1),)


def test_a_step_stays_while_records_below_the_log_start_are_still_stored():
    """C19: else they would be counted against the next step when they go."""
    log = a_pure_log("a=∅ b=1")
    log.round(some_settings(), 1000)
    log.draw("c=∅ d=1")
    log.round(some_settings(), 2000, meanwhile=lambda: log.move_start(2))
    assert log.state.steps == (TombstoneStep(2, 1000, 1), TombstoneStep(4, 2000, 1))
    log.round(some_settings(), 3000)
    assert (offsets(log.contents), log.state.steps) == ([2, 3], (TombstoneStep(4, 2000, 1),))


def test_a_round_that_moves_the_log_start_drops_the_steps_below_it():
    """C24, C19, C36: what goes whole goes unread."""
    log = a_pure_log("a=∅!1")
    log.round(some_settings(), 2)
    log.draw("b=1!6000")
    outcome = log.round(some_settings(**RETAINED), 7000)
    assert (log.state.log_start_offset, log.state.first_dirty_offset, log.state.steps) == (
        1,
        2,
        (TombstoneStep(2, 7000, 0),),
    )
    assert (offsets(log.contents), [s.path for s in outcome.removed]) == ([1], ["s0"])


def test_tombstones_of_segments_that_went_unread_are_counted_until_their_step_expires():
    """C19, C21: at most so many; one round looks, and then the log is not due again."""
    log = a_pure_log("a=∅!1 b=∅!1 c=1!1", "d=∅!6000 e=1!6000")
    settings = some_settings(**(RETAINED | {"delete_retention_ms": 2000}))
    log.round(settings, 4000)
    log.round(settings, 5500)  # the first segment goes whole
    assert (offsets(log.contents), log.state.steps) == ([3, 4], (TombstoneStep(5, 4000, 3),))
    log.round(settings, 6000)
    assert (offsets(log.contents), log.state.tombstones) == ([4], 0)


def test_a_count_of_tombstones_that_are_not_there_is_put_right_once():
    """C21, C41: where every tombstone went unread, a round records just that."""
    log = a_pure_log("a=∅!1", "b=1!6000")
    settings = some_settings(**RETAINED)
    log.round(settings, 4000)
    log.state = replace(log.state, log_start_offset=1)
    log.segments = log.segments[1:]
    assert log.state.tombstones == 1
    outcome = log.round(settings, 4100)
    assert (outcome.plan.scanned, outcome.changes, log.state.tombstones) == ((), True, 0)
    assert log.plan(settings, 4100).is_idle


def test_a_held_tombstone_among_others_that_expire_later_is_counted_with_them():
    """C20, C19: all that have expired are looked at, and what is left of them is exactly known."""
    log = a_pure_log("a=∅!900")
    settings = some_settings(**BY_TIME)
    log.round(settings, 1000)
    log.draw("b=∅!900")
    log.round(settings, 1050)
    log.draw("a=1!850")
    waits = some_settings(**BY_TIME, min_compaction_lag_bytes=20)
    log.round(waits, 1100)
    assert log.state.held == HeldTombstones(1, 2)
    assert log.state.steps == (TombstoneStep(1, 1000, 1), TombstoneStep(2, 1050, 1))
    log.round(waits, 1150)
    assert (offsets(log.contents), log.state.held) == ([0, 2], HeldTombstones(2, 2))
    assert log.state.steps == (TombstoneStep(2, 1050, 1),)


def test_a_new_tombstone_without_retention_can_be_held_at_once():
    """C20, C18: by what waits above the horizon of the very round that covers it."""
    log = a_pure_log("a=∅!900", "a=1!850")
    waits = some_settings(compaction_strategy="timestamp", delete_retention_ms=0, min_compaction_lag_bytes=20)
    log.round(waits, 1000)
    assert (offsets(log.contents), log.state.held) == ([0, 1], HeldTombstones(1, 1))
    assert log.plan(waits, 1000).is_idle
    log.round(replace(waits, min_compaction_lag_bytes=0), 2000)
    assert (offsets(log.contents), log.state.held) == ([], None)


COPY = {"delete_retention_ms": 0, "null_key": "drop"}


def test_what_chunks_hold_is_noted_with_how_many_there_are():
    """C53, C41: it is no reason for a round until one of them goes, however much is appended."""
    settings = some_settings(**COPY)
    log = a_pure_log("□a=x a=∅ b=∅")
    log.round(settings, 1000)
    assert (offsets(log.contents), log.state.held) == ([0, 1], HeldTombstones(3, 3, 1, waits=False))
    assert log.plan(settings, 2000).is_idle
    log.draw("□c=x c=∅ d=∅ e=1")
    outcome = log.round(settings, 1100)
    assert not outcome.plan.expires_tombstones
    assert (offsets(log.contents), log.state.held) == ([0, 1, 3, 4, 6], HeldTombstones(7, 7, 2, waits=False))
    assert log.plan(settings, 2000).is_idle


def test_a_chunk_that_goes_lets_a_round_look_again():
    """C53, C26."""
    settings = some_settings(**COPY)
    log = a_pure_log("□a=x", "□b=x a=∅ b=∅")
    log.round(settings, 1000)
    assert log.state.held == HeldTombstones(4, 4, 2, waits=False)
    log.move_start(1)
    log.segments = tuple(s for s in log.segments if s.end_offset > 1)
    log.state = measured(log.state, log.segments)
    assert not log.plan(settings, 1000).is_idle
    log.round(settings, 1000)
    assert (draw([log.contents]), log.state.held) == ("□b=x@1 b=∅@3", HeldTombstones(4, 4, 1, waits=False))


def test_what_waits_and_what_chunks_hold_are_noted_together():
    """C20, C53: the horizon may free some, a chunk others."""
    waits = some_settings(compaction_strategy="timestamp", delete_retention_ms=0, min_compaction_lag_bytes=20)
    log = a_pure_log("a=∅!900 □b=x!100 b=∅!900", "a=1!850")
    log.round(waits, 1000)
    assert log.state.held == HeldTombstones(3, 3, 1, waits=True)
    assert log.plan(waits, 1000).is_idle
    log.round(some_settings(compaction_strategy="timestamp", delete_retention_ms=0), 1000)
    assert (draw([log.contents]), log.state.held) == ("□b=x@1 b=∅@2", HeldTombstones(4, 4, 1, waits=False))


def test_after_a_round_its_run_is_recorded_and_none_is_required():
    """C7, C26, C43."""
    log = a_pure_log("a=1")
    log.state = replace(log.state, round_required="a setting changed", uncovered=True)
    outcome = log.round(some_settings(), 7)
    times = RoundTimes(7, 7)
    after = state_after(outcome, log.state, After(log.segments, None), some_settings(), run_id="r7", times=times)
    assert (after.last_round, after.last_round_ms, after.round_required, after.uncovered) == ("r7", 7, "", False)


def test_a_deletion_during_a_round_still_requires_one():
    """C26, C44."""
    log = a_pure_log("a=1 b=1 c=1")

    def delete():
        log.state = replace(
            log.state, log_start_offset=1, deleted_below=1, round_required="records below 1 were deleted"
        )

    log.round(some_settings(), 7, meanwhile=delete)
    assert (log.state.round_required, offsets(log.contents)) == ("records below 1 were deleted", [0, 1, 2])
    log.round(some_settings(), 7)
    assert (log.state.round_required, offsets(log.contents)) == ("", [1, 2])


def test_the_first_view_shares_the_segments_that_have_no_loser():
    """C33, C39: the backlog stays as written."""
    log = a_pure_log("a=1 b=1", "c=1 d=" + "x" * 1100, "a=2")
    backlog = log.segments
    outcome = log.round(some_settings(**BESIDE, segment_bytes=1024), 7)
    assert log.segments == backlog
    assert (offsets(log.records_in(log.view)), offsets(log.contents)) == ([1, 2, 3, 4], [0, 1, 2, 3, 4])
    assert [s.path for s in outcome.view_added if s in backlog] == ["s1", "s2"]
    assert (outcome.added, outcome.removed, outcome.view_removed) == ((), (), ())
    view = log.state.view
    assert view is not None
    assert (view.volume, view.first_offset, view.last_record) == (volume_of(log.view), 1, LastRecord(4, 0))
    assert log.state.volume == volume_of(backlog)


def test_old_tombstones_are_not_taken_for_old_values_again():
    """C24, C28, C41: a round remembers how old the values were that it took, also where it found none."""
    log = a_pure_log("a=∅!10 b=1!10 c=1!8000")
    settings = some_settings(**(RETAINED | {"delete_retention_ms": 10**6}))
    log.round(settings, 6000)
    assert (offsets(log.contents), log.state.aged_before_ms) == ([0, 2], 1000)
    assert log.plan(settings, 6000).is_idle
    assert log.round(settings, 7000).changes
    assert (offsets(log.contents), log.state.aged_before_ms) == ([0, 2], 2000)
    assert not log.round(settings, 7000).changes
    log.round(settings, 13001)
    assert (offsets(log.contents), log.state.log_start_offset) == ([], 3)  # now the whole segment is past it
