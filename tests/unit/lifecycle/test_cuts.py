"""What cutting does to the state of a log (C7, C19, C24, C26, C33, C35, C36)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import OffsetOutOfRangeError, PolicyError
from lithify.model.missed import DroppedDeletes
from lithify.model.names import LogId, TopicName
from lithify.model.segment import Volume, volume_of
from lithify.model.topic.log import TRUNCATIONS_KEPT, HeldTombstones, LastRecord, TombstoneStep, View
from lithify.rules.lifecycle.cuts import Cut, Truncation, records_deleted, retained, truncated, truncation, uncompacted
from support.builders import a_log, some_settings

ID = LogId(TopicName("default", "orders"), 0)
LOG = a_log("a=1!1 b=1!2 | c=1!3 d=∅!4 | e=1!5 f=1!6")
STEPS = (TombstoneStep(2, 100, 1), TombstoneStep(4, 200, 2))
STATE = LOG.state(dirty_from=4, steps=STEPS)
A_VIEW = View(Volume(3, 30), 1, LastRecord(3, 4))


def beside(**changes):
    """The same side by side, with a view of what is below D."""
    return replace(STATE, view=A_VIEW, **changes)


def retain(state, count, **config):
    settings = some_settings(cleanup_policy="compact,delete", **config)
    return retained(state, LOG.segments[:count], LOG.segments[count:], settings)


@pytest.mark.parametrize("offset", [1.5, 4.0, float("nan"), "4", None])
def test_a_cut_is_at_a_whole_number(offset):
    with pytest.raises(OffsetOutOfRangeError, match="is not an offset"):
        records_deleted(ID, STATE, offset, LOG.segments)
    with pytest.raises(OffsetOutOfRangeError, match="is not an offset"):
        truncation(ID, STATE, offset, below_compacted=True)


def test_retention_moves_the_log_start_behind_what_went():
    """C24, C27, C36."""
    after = retain(STATE, 1)
    assert (after.log_start_offset, after.first_dirty_offset, after.log_end_offset) == (2, 4, 6)
    assert (after.clean, after.dirty) == (volume_of(LOG.segments[1:2]), volume_of(LOG.segments[2:]))
    assert (after.last_record, after.round_required, after.deleted_below) == (LastRecord(5, 6), "", 0)


def test_retention_drops_the_steps_of_what_went():
    """C19: those that end at or below S."""
    assert retain(STATE, 1).steps == STEPS[1:]
    assert retain(STATE, 2).steps == ()


def test_retention_keeps_the_steps_of_what_is_stored_below_the_log_start():
    """C19, C26: deleted records are stored as long as no round has taken them out of a segment that S cuts in two."""
    deleted = records_deleted(ID, replace(STATE, steps=(TombstoneStep(3, 100, 1), TombstoneStep(4, 200, 1))), 3, ())
    after = retain(deleted, 1)
    assert (after.log_start_offset, [step.end_offset for step in after.steps]) == (3, [3, 4])


def test_retention_side_by_side_leaves_the_view_and_its_steps():
    """C33: trimming the backlog removes nothing from the view."""
    after = retain(beside(), 2, compaction_mode="side-by-side")
    assert (after.log_start_offset, after.first_dirty_offset, after.steps, after.view) == (4, 4, STEPS, A_VIEW)


@pytest.mark.parametrize("before", [-1, 7])
def test_records_can_be_deleted_up_to_the_log_end(before):
    """C26."""
    with pytest.raises(OffsetOutOfRangeError, match=f"orders-0: cannot delete before {before}: the log ends at 6"):
        records_deleted(ID, STATE, before, LOG.segments)


def test_a_setting_that_changed_before_stays_required_as_well():
    """C26, C43: any round clears it, also one that does not reach what was deleted."""
    after = records_deleted(ID, replace(STATE, round_required="changed: null.key"), 3, LOG.segments)
    assert after.round_required == "changed: null.key"
    further = records_deleted(ID, records_deleted(ID, STATE, 3, LOG.segments), 4, LOG.segments)
    assert further.round_required == "records below 4 were deleted"


def test_deleting_records_beyond_the_first_dirty_offset_takes_it_along():
    """C26: and to the log end leaves no last record."""
    after = records_deleted(ID, STATE, 5, LOG.segments)
    assert (after.log_start_offset, after.first_dirty_offset) == (5, 5)
    after = records_deleted(ID, STATE, 6, LOG.segments)
    assert (after.log_start_offset, after.first_dirty_offset, after.last_record) == (6, 6, None)


def test_deleting_what_was_deleted_changes_nothing():
    """C26."""
    once = records_deleted(ID, STATE, 3, LOG.segments)
    assert records_deleted(ID, once, 3, LOG.segments) == once
    assert records_deleted(ID, once, 1, LOG.segments) == once
    assert records_deleted(ID, STATE, 0, LOG.segments) == STATE


def test_deleting_records_where_none_are_stored_requires_no_round():
    """C26: a gap in the offsets."""
    log = a_log("a=1@5")
    after = records_deleted(ID, log.state(), 3, log.segments)
    assert (after.log_start_offset, after.round_required) == (3, "")


def test_deleting_records_side_by_side_cuts_the_view_too():
    """C26, C36, C37: also below S, where the view alone has records."""
    after = records_deleted(ID, beside(), 2, LOG.segments)
    assert (after.compacted_start, after.compacted_last_record) == (2, LastRecord(5, 6))
    trimmed = beside(log_start_offset=4)
    after = records_deleted(ID, trimmed, 3, LOG.segments[2:])
    assert (after.log_start_offset, after.deleted_below, after.compacted_start) == (4, 3, 3)
    assert after.round_required == "records below 3 were deleted"


def test_of_a_view_that_was_deleted_whole_nothing_is_last():
    """C36."""
    state = beside(log_start_offset=4, last_record=LastRecord(3, 4), log_end_offset=4)
    after = records_deleted(ID, state, 4, ())
    assert (after.compacted_last_record, after.compacted_start) == (None, 4)


@pytest.mark.parametrize("to", [2, 7, -1])
def test_a_truncation_is_within_the_log(to):
    """C26: S <= N <= E."""
    with pytest.raises(OffsetOutOfRangeError, match=rf"cannot truncate to {to}: the log has offsets from 3 to 6"):
        truncation(ID, replace(STATE, log_start_offset=3), to, below_compacted=True)


def test_a_truncation_at_or_above_the_first_dirty_offset_leaves_it():
    """C26: and the view."""
    for state in (STATE, beside()):
        for to in (4, 5, 6):
            assert truncation(ID, state, to, below_compacted=False) == Truncation(to, 4, 4)


def test_a_truncated_log_ends_there_in_a_new_generation():
    """C26, C7, C36: dirty bytes are those that are left."""
    cut = a_log("a=1!1 b=1!2 | c=1!3 d=∅!4 | e=1!5")
    held = replace(STATE, held=HeldTombstones(4, 4))
    after = truncated(held, Truncation(5, 4, 4), Cut(cut.segments, LastRecord(4, 5)))
    assert (after.log_end_offset, after.first_dirty_offset, after.generation, after.truncated) == (5, 4, 1, (5,))
    assert (after.steps, after.held, after.last_record) == (STEPS, None, LastRecord(4, 5))
    assert after.dirty == volume_of(cut.segments[2:])


def test_latest_truncations_are_remembered():
    """C7: by them a following reader learns that it was cut off."""
    state = STATE
    for end in range(20, 0, -1):
        state = truncated(state, Truncation(end, 0, 0), Cut((), None))
    assert (state.generation, state.truncated) == (20, tuple(range(TRUNCATIONS_KEPT, 0, -1)))


@pytest.mark.parametrize(
    ("to", "steps"),
    [
        (4, STEPS),
        (3, (STEPS[0], TombstoneStep(3, 200, 2))),
        (2, (STEPS[0],)),
        (1, (TombstoneStep(1, 100, 1),)),
        (0, ()),
    ],
)
def test_steps_above_a_truncation_end_there(to, steps):
    """C26: the first that reached it says since when; those behind it covered nothing that is left."""
    assert truncated(STATE, Truncation(to, to, to), Cut((), None)).steps == steps


def test_a_truncation_that_leaves_nothing_readable_has_no_last_record():
    """C36: what is below S may still be stored."""
    state = replace(STATE, log_start_offset=1)
    assert truncated(state, Truncation(1, 1, 1), Cut(a_log("a=1!1").segments, LastRecord(0, 1))).last_record is None


def test_a_view_that_was_cut_says_what_is_left_of_it():
    """C26, C36."""
    left = a_log("a=1!1 b=1!2").segments
    cut = Cut((), None, left, LastRecord(1, 2))
    after = truncated(beside(log_start_offset=2), Truncation(3, 2, 2), cut)
    assert after.view == View(volume_of(left), 0, LastRecord(1, 2))
    assert (after.first_dirty_offset, after.compacted_last_record) == (2, LastRecord(1, 2))
    assert truncated(STATE, Truncation(3, 3, 3), Cut((), None)).view is None


def test_without_its_view_a_log_is_all_dirty():
    """C35: D = S, no steps, nothing held, no round to undo; what is required stays required."""
    state = beside(log_start_offset=2, held=HeldTombstones(4, 4), uncovered=True, last_round="r", round_required="x")
    after = uncompacted(state, LOG.segments[1:])
    assert (after.log_start_offset, after.first_dirty_offset, after.log_end_offset) == (2, 2, 6)
    assert (after.view, after.steps, after.held, after.uncovered, after.last_round) == (None, (), None, False, "")
    assert (after.clean, after.dirty, after.round_required) == (Volume(), volume_of(LOG.segments[1:]), "x")
    assert after.oldest_dirty_timestamp_ms == 3


def test_a_dropped_view_leaves_a_note_of_how_far_the_log_was_compacted():
    """C26: the furthest D of all; 0 where no round had compacted anything above S."""
    assert uncompacted(STATE, LOG.segments).compacted_below == 4
    assert uncompacted(replace(STATE, compacted_below=5), LOG.segments).compacted_below == 5
    assert uncompacted(replace(STATE, log_start_offset=4), LOG.segments[2:]).compacted_below == 0


SET_BACK = uncompacted(STATE, LOG.segments)


def test_a_truncation_below_what_was_once_compacted_asks_first():
    """C26: D is back at S, but the superseded values are not."""
    with pytest.raises(PolicyError, match="orders-0: rounds may have compacted the log up to 4, above 3"):
        truncation(ID, SET_BACK, 3, below_compacted=False)
    assert truncation(ID, SET_BACK, 3, below_compacted=True) == Truncation(3, 0, 0)
    assert truncation(ID, SET_BACK, 4, below_compacted=False) == Truncation(4, 0, 0)


def test_a_truncation_of_what_was_never_compacted_leaves_no_note():
    """C49: nobody has skipped a value."""
    never = LOG.state()
    for losers_removed, view in ((False, None), (True, None), (True, View())):
        state = replace(never, losers_removed=losers_removed, view=view)
        assert truncated(state, Truncation(0, 0, 0), Cut((), None)).dropped == ()


def test_a_truncation_of_a_compacted_log_tells_readers_of_deletes_that_are_gone():
    """C49: those that records truncated now had superseded."""
    state = replace(STATE, losers_removed=True)
    note = DroppedDeletes(STATE.next_epoch, 4, of_view=False, restored=True)
    assert truncated(state, Truncation(3, 3, 4), Cut(LOG.segments[:1], None)).dropped == (note,)


def test_a_truncation_lowers_what_was_once_compacted_and_tells_readers_of_the_view():
    """C26, C49: values that readers of the dropped view have skipped are current again."""
    after = truncated(SET_BACK, Truncation(3, 0, 0), Cut(LOG.segments[:1], None))
    assert after.compacted_below == 3
    assert after.dropped == (DroppedDeletes(SET_BACK.next_epoch, 4, of_view=True, restored=True),)
    assert truncated(SET_BACK, Truncation(4, 0, 0), Cut(LOG.segments[:2], None)).dropped == ()
