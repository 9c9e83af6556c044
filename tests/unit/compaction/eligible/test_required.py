"""Rounds that are required whatever the dirty ratio, and which round clears that (C26, C28, C41, C43)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.log_arithmetic import measured
from lithify.model.names import LogId, TopicName
from lithify.rules.lifecycle.cuts import records_deleted
from lithify.rules.schedule.assessment import assess
from support.builders import some_settings
from support.topics.pure_rounds import a_pure_log, offsets

ID = LogId(TopicName("default", "orders"), 0)
LAG = some_settings(min_compaction_lag_ms=50, min_cleanable_dirty_ratio=1)


def a_held_log(before=2):
    """A log whose only segment is too young to be touched at 120, some records of which were deleted."""
    log = a_pure_log("a=1!100 b=1!100 c=1!100")
    log.state = records_deleted(ID, log.state, before, log.segments)
    return log


def test_what_the_newest_bytes_hold_back_stays_required_and_is_not_due():
    """C14, C26, C28: a round would change nothing, again and again; a scenario has the same of a lag in time."""
    log = a_held_log()
    settings = some_settings(min_compaction_lag_bytes=10_000, min_cleanable_dirty_ratio=1)
    assert not log.round(settings, 1000).changes and log.state.round_required
    assert not assess(log.state, log.segments, settings, 1000).verdict.due


def test_a_round_for_a_changed_setting_leaves_required_what_it_does_not_reach():
    """C43, C26."""
    log = a_held_log()
    log.state = replace(log.state, round_required="changed: null.key")
    assert log.round(LAG, 120).changes
    assert log.state.round_required == "records below 2 were deleted"
    assert not log.round(LAG, 120).changes


def test_no_round_is_required_for_what_retention_has_taken():
    """C24, C26: the next one records that."""
    log = a_held_log(before=3)
    log.segments = ()
    log.state = measured(log.state, ())
    assert log.round(LAG, 120).changes and not log.state.round_required


@pytest.mark.parametrize("before", [1, 2])
def test_side_by_side_the_view_is_all_that_a_round_rewrites(before):
    """C26, C33: so a log is not due again and again for what its backlog stores below the log start."""
    settings = some_settings(compaction_mode="side-by-side")
    log = a_pure_log("a=1 b=1 c=1")
    log.round(settings, 10)
    log.state = records_deleted(ID, log.state, before, log.segments)
    assert log.state.round_required
    log.round(settings, 20)
    assert log.state.round_required == ""
    assert (offsets(log.compacted), offsets(log.contents)) == ([*range(before, 3)], [0, 1, 2])
