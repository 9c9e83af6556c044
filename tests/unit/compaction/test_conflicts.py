"""Whether a round may still commit on a log that moved on (C44)."""

from __future__ import annotations

from dataclasses import replace

from lithify.compaction.conflicts import conflict
from support.builders import a_log

LOG = a_log("a=1 | b=2 | a=3")
STATE = LOG.state(dirty_from=1)
PLAN = LOG.plan(STATE)


def test_a_log_that_stands_still_is_no_conflict():
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


def test_a_truncation_is_a_conflict():
    """C44: offsets may since have been given anew."""
    assert "truncated" in (conflict(PLAN, replace(STATE, generation=1), LOG.segments) or "")


def test_a_source_that_is_gone_is_a_conflict_and_named():
    """C44: a round that moved nothing, of tombstones alone, replaces segments as well."""
    for gone in (0, 1, 2):
        left = tuple(s for s in LOG.segments if s.path != f"s{gone}")
        assert f"s{gone}" in (conflict(PLAN, STATE, left) or "")
