"""Rounds that are required whatever the dirty ratio, and which round clears that (C26, C28, C41, C43)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.lifecycle.cuts import records_deleted
from lithify.model.log_arithmetic import measured
from lithify.model.names import LogId, TopicName
from lithify.schedule.assessment import assess
from support.builders import a_log, some_settings
from support.topics.pure_rounds import PureLog, offsets

ID = LogId(TopicName("default", "orders"), 0)
LAG = some_settings(min_compaction_lag_ms=50, min_cleanable_dirty_ratio=1)


def a_held_log(text="a=1!100 b=1!100 c=1!100", before=2):
    """A log whose only segment is too young to be touched at 120, some records of which were deleted."""
    log = PureLog()
    log.append(a_log(text).records)
    log.state = records_deleted(ID, log.state, before, log.segments)
    return log


def is_due(log, now_ms):
    return assess(log.state, log.segments, LAG, now_ms).verdict


def test_a_round_that_does_not_reach_deleted_records_does_not_forget_them():
    """C26: they are stored yet, and go by the first round that reaches them."""
    log = a_held_log()
    assert not log.round(LAG, 120).changes
    assert (log.state.round_required, offsets(log.contents)) == ("records below 2 were deleted", [0, 1, 2])
    log.round(LAG, 150)
    assert (log.state.round_required, offsets(log.contents)) == ("", [2])


def test_no_round_is_due_for_what_it_cannot_reach():
    """C28, C41: it would change nothing, again and again; and it is known when one will."""
    log = a_held_log()
    held = is_due(log, 120)
    assert (held.due, held.due_at_ms) == (False, 150)
    assert is_due(log, 150).reason == "records below 2 were deleted"


def test_the_newest_bytes_that_wait_hold_it_as_well():
    """C14, C26."""
    log = a_held_log()
    settings = some_settings(min_compaction_lag_bytes=10_000, min_cleanable_dirty_ratio=1)
    assert not log.round(settings, 1000).changes and log.state.round_required
    assert not assess(log.state, log.segments, settings, 1000).verdict.due


def test_a_changed_setting_is_paid_by_a_round_that_is_held_back():
    """C43, C26: and what it cannot reach stays required."""
    log = a_held_log()
    log.state = replace(log.state, round_required="changed: null.key")
    assert log.round(LAG, 120).changes
    assert log.state.round_required == "records below 2 were deleted"
    assert not log.round(LAG, 120).changes


def test_what_retention_has_taken_is_owed_by_no_round_any_more():
    """C24, C26: the next one says so."""
    log = a_held_log(before=3)
    log.segments = ()
    log.state = measured(log.state, ())
    assert log.round(LAG, 120).changes and not log.state.round_required


@pytest.mark.parametrize("before", [1, 2])
def test_side_by_side_the_view_is_all_that_a_round_rewrites(before):
    """C26, C33: so a log is not due for ever for what its backlog stores below the log start."""
    settings = some_settings(compaction_mode="side-by-side")
    log = PureLog()
    log.append(a_log("a=1 b=1 c=1").records)
    log.round(settings, 10)
    log.state = records_deleted(ID, log.state, before, log.segments)
    assert log.state.round_required
    log.round(settings, 20)
    assert (log.state.round_required, offsets(log.compacted), offsets(log.contents)) == (
        "",
        [*range(before, 3)],
        [0, 1, 2],
    )
