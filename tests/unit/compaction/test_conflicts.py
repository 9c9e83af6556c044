"""Whether a round may still commit on a log that moved on (C44)."""

from __future__ import annotations

from dataclasses import replace

from lithify.compaction.conflicts import conflict
from lithify.model.log import View
from support.builders import a_log

LOG = a_log("a=1 | b=2 | a=3")
STATE = LOG.state(dirty_from=1)
PLAN = LOG.plan(STATE)


def test_an_unchanged_log_is_no_conflict():
    """C44."""
    assert conflict(PLAN, STATE, LOG.segments) is None


def test_an_append_is_no_conflict():
    """C44."""
    grown = a_log("a=1 | b=2 | a=3 | a=4")
    assert conflict(PLAN, grown.state(dirty_from=1), grown.segments) is None


def test_delete_records_is_no_conflict():
    """C44: neither below D nor beyond it, where it takes D along."""
    for start in (1, 2):
        assert conflict(PLAN, LOG.state(dirty_from=1, start=start), LOG.segments) is None


def test_another_round_is_a_conflict():
    """C44: it moved D."""
    assert "another round" in (conflict(PLAN, LOG.state(dirty_from=3), LOG.segments) or "")


def test_another_round_after_delete_records_is_a_conflict():
    """C44: D stands where S alone would not have taken it."""
    state = replace(LOG.state(dirty_from=3), log_start_offset=2)
    assert "another round" in (conflict(PLAN, state, LOG.segments) or "")


def test_whatever_began_a_new_epoch_is_a_conflict():
    """C44: a round that was undone leaves D and every file as the plan has them, and is one all the same."""
    assert "undone" in (conflict(PLAN, replace(STATE, epoch=STATE.next_epoch), LOG.segments) or "")


def test_a_truncation_is_a_conflict():
    """C44: offsets may since have been given anew."""
    assert "truncated" in (conflict(PLAN, replace(STATE, generation=1), LOG.segments) or "")


def test_a_source_that_is_gone_is_a_conflict_and_named():
    """C44: a round that moved nothing, of tombstones alone, replaces segments as well."""
    for gone in (0, 1, 2):
        left = tuple(s for s in LOG.segments if s.path != f"s{gone}")
        assert f"s{gone}" in (conflict(PLAN, STATE, left) or "")


BESIDE = {"compaction_mode": "side-by-side", "cleanup_policy": "compact,delete", "retention_ms": 100}
VIEW = a_log("a=1 | b=2").segments
BESIDE_STATE = replace(LOG.state(dirty_from=2), view=View())


def beside(now_ms=0):
    """A round of LOG side by side, whose view shares its first two files."""
    return LOG.plan(BESIDE_STATE, now_ms=now_ms, view=VIEW, **BESIDE)


def test_an_unchanged_view_is_no_conflict():
    """C44, C33."""
    assert conflict(beside(), BESIDE_STATE, LOG.segments, VIEW) is None


def test_a_view_that_was_changed_is_a_conflict():
    """C44: taken away, grown, or with one file rewritten."""
    other = replace(VIEW[1], path="other")
    for view in ((), VIEW[:1], (*VIEW, other), (VIEW[0], other)):
        assert conflict(beside(), BESIDE_STATE, LOG.segments, view) == "the compacted view was changed"


def test_a_backlog_that_was_trimmed_below_the_first_dirty_offset_is_no_conflict():
    """C44, C33: the round does not read it; the view has it still."""
    trimmed = replace(BESIDE_STATE, log_start_offset=1)
    assert beside().gone == ()
    assert conflict(beside(), trimmed, LOG.segments[1:], VIEW) is None


def test_a_segment_that_the_round_trims_must_be_there():
    """C44: that the view names the same file is not enough."""
    plan = beside(now_ms=1000)
    assert [s.path for s in plan.gone] == ["s0", "s1", "s2"]
    assert conflict(plan, BESIDE_STATE, LOG.segments, VIEW) is None
    assert "s0" in (conflict(plan, BESIDE_STATE, LOG.segments[1:], VIEW) or "")


def test_a_dirty_segment_that_is_gone_is_a_conflict_side_by_side_too():
    """C44."""
    assert "s2" in (conflict(beside(), BESIDE_STATE, LOG.segments[:2], VIEW) or "")
