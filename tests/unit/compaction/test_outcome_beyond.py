"""The state of a log after rounds with retention, held tombstones, changed settings and views (C20, C24, C33, C43)."""

from __future__ import annotations

from dataclasses import replace

from lithify.compaction.outcome import After, state_after
from lithify.model.log import HeldTombstones, LastRecord, TombstoneStep, View
from lithify.model.segment import volume_of
from support.builders import a_log, some_settings
from support.topics.pure_rounds import PureLog, offsets

BY_TIME = {"compaction_strategy": "timestamp", "delete_retention_ms": 100}
BESIDE = {"compaction_mode": "side-by-side", "delete_retention_ms": 100}
RETAINED = {"cleanup_policy": "compact,delete", "retention_ms": 5000, "delete_retention_ms": 100}


def a_pure_log(*segments):
    log = PureLog()
    for text in segments:
        append(log, text)
    return log


def append(log, text):
    log.append(a_log(text, first_offset=log.state.log_end_offset).records)


def test_a_round_that_moves_the_log_start_drops_the_steps_below_it():
    """C24, C19, C36: what goes whole goes unread."""
    log = a_pure_log("a=∅!1")
    log.round(some_settings(), 2)
    append(log, "b=1!6000")
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


def test_tombstones_that_are_held_are_remembered_with_the_horizon_that_holds_them():
    """C20, C41: nothing is looked for again until the horizon moves; then they go."""
    log = a_pure_log("a=∅!900 b=∅!900")
    settings = some_settings(**BY_TIME)
    log.round(settings, 1000)
    append(log, "a=1!850")
    waits = some_settings(**BY_TIME, min_compaction_lag_bytes=20)
    outcome = log.round(waits, 1100)
    assert outcome.findings.tombstones_held == 1
    assert (offsets(log.contents), log.state.held) == ([0, 2], HeldTombstones(2, 2))
    assert log.state.steps == (TombstoneStep(2, 1000, 1),)
    assert log.plan(waits, 10**6).is_idle
    log.round(settings, 1100)
    assert (offsets(log.contents), log.state.held, log.state.tombstones) == ([], None, 0)


def test_a_held_tombstone_among_others_that_expire_later_is_counted_with_them():
    """C20, C19: all that have expired are looked at, and what is left of them is exactly known."""
    log = a_pure_log("a=∅!900")
    settings = some_settings(**BY_TIME)
    log.round(settings, 1000)
    append(log, "b=∅!900")
    log.round(settings, 1050)
    append(log, "a=1!850")
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


def test_tombstones_without_a_version_are_counted_when_they_lose():
    """C11."""
    log = a_pure_log("a=1#5 a=∅ b=∅")
    outcome = log.round(some_settings(compaction_strategy="header", compaction_strategy_header="v"), 0)
    assert (outcome.findings.tombstones_unversioned, offsets(log.contents)) == (1, [0, 2])


def test_a_round_keeps_its_name_and_owes_nothing():
    """C7, C26, C43."""
    log = a_pure_log("a=1")
    log.state = replace(log.state, round_required="a setting changed", uncovered=True)
    outcome = log.round(some_settings(), 7)
    after = state_after(outcome, log.state, After(log.segments, None), some_settings(), run_id="r7", now_ms=7)
    assert (after.last_round, after.last_round_ms, after.round_required, after.uncovered) == ("r7", 7, "", False)


def test_a_required_round_with_nothing_to_do_is_recorded():
    """C43, C41: or the log would be due for ever."""
    log = a_pure_log("a=1")
    log.round(some_settings(), 7)
    log.state = replace(log.state, round_required="a setting changed")
    assert log.round(some_settings(), 7).changes
    assert (log.state.round_required, log.round(some_settings(), 7).changes) == ("", False)


def test_what_is_deleted_while_a_round_goes_on_stays_owed():
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


def test_everything_is_covered_anew_after_a_change():
    """C43: steps begin again, with all the tombstones that there are under the new rules."""
    log = a_pure_log("a='' b=∅ c=1")
    log.round(some_settings(), 1000)
    assert log.state.steps == (TombstoneStep(3, 1000, 1),)
    log.state = replace(log.state, steps=(), uncovered=True, round_required="changed: empty.value")
    settings = some_settings(empty_value="tombstone")
    log.round(settings, 2000)
    assert (log.state.steps, log.state.first_dirty_offset) == ((TombstoneStep(3, 2000, 2),), 3)
    assert log.plan(settings, 2000).is_idle


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


def test_a_later_round_exchanges_only_what_it_rewrote_of_the_view():
    """C34, C39."""
    log = a_pure_log("a=1 b=1", "c=" + "x" * 1100)
    settings = some_settings(**BESIDE, segment_bytes=1024)
    log.round(settings, 7)
    append(log, "b=2 d=" + "x" * 1100)
    outcome = log.round(settings, 8)
    assert [s.path for s in outcome.view_removed] == ["s0"]
    assert [s.base_offset for s in outcome.view_added] == [0, 3]
    assert "s2" in [s.path for s in outcome.view_added]
    assert offsets(log.records_in(log.view)) == [0, 2, 3, 4]


def test_the_steps_side_by_side_are_those_of_the_view():
    """C18, C33: a tombstone goes from the view and stays in the backlog."""
    log = a_pure_log("a=1 a=∅ b=1")
    settings = some_settings(**BESIDE)
    log.round(settings, 1000)
    assert log.state.steps == (TombstoneStep(3, 1000, 1),)
    log.round(settings, 1100)
    assert (offsets(log.records_in(log.view)), offsets(log.contents)) == ([2], [0, 1, 2])
    assert (log.state.tombstones, log.plan(settings, 1100).is_idle) == (0, True)


def test_a_view_of_which_all_keys_are_deleted_is_there_and_empty():
    """C36: which is not the same as none."""
    log = a_pure_log("a=1 a=∅")
    log.round(some_settings(**(BESIDE | {"delete_retention_ms": 0})), 7)
    assert log.state.view == View()
    assert (log.state.compacted_start, log.state.compacted_last_record) == (0, None)


def test_a_round_side_by_side_trims_the_backlog_and_keeps_the_view():
    """C33, C41: what it covers, in the same commit; nothing is left for a second one."""
    log = a_pure_log("a=1!1", "b=1!2", "c=1!6000")
    settings = some_settings(**RETAINED, **{"compaction_mode": "side-by-side"})
    log.round(settings, 7000)
    assert (log.state.log_start_offset, offsets(log.contents)) == (2, [2])
    assert offsets(log.records_in(log.view)) == offsets(log.compacted) == [0, 1, 2]
    assert log.plan(settings, 7000).is_idle
    log.round(settings, 12000)
    assert (log.state.log_start_offset, log.state.last_record, offsets(log.compacted)) == (3, None, [0, 1, 2])
    assert log.state.compacted_last_record == LastRecord(2, 6000)


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
