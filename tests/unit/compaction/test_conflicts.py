"""Whether a round may still commit on a log that moved on (C44)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.topic.log import View
from lithify.rules.compaction.round_commit import conflict
from support.builders import a_log

LOG = a_log("a=1 | b=2 | a=3")
GROWN = a_log("a=1 | b=2 | a=3 | a=4")
STATE = LOG.state(dirty_from=1)
S0, S1, S2 = LOG.segments

IN_PLACE = {
    "nothing happened": (STATE, LOG.segments, None),
    "an append": (GROWN.state(dirty_from=1), GROWN.segments, None),
    "delete-records below D": (LOG.state(dirty_from=1, start=1), LOG.segments, None),
    "delete-records beyond D, which it takes along": (LOG.state(dirty_from=1, start=2), LOG.segments, None),
    "another round": (LOG.state(dirty_from=3), LOG.segments, "another round"),
    "another round and delete-records": (
        replace(LOG.state(dirty_from=3), log_start_offset=2),
        LOG.segments,
        "another round",
    ),
    "a round that was undone, which leaves D and every file": (
        replace(STATE, epoch=STATE.next_epoch),
        LOG.segments,
        "undone",
    ),
    "a truncation": (replace(STATE, generation=1), LOG.segments, "truncated"),
    "a clean source is gone, by a round of tombstones alone": (STATE, (S1, S2), "s0"),
    "a dirty source is gone": (STATE, (S0, S2), "s1"),
    "the last source is gone": (STATE, (S0, S1), "s2"),
}


@pytest.mark.parametrize(("state", "segments", "says"), IN_PLACE.values(), ids=IN_PLACE)
def test_what_is_a_conflict(state, segments, says):
    """C44."""
    found = conflict(LOG.plan(STATE), state, 1, segments)
    assert found is None if says is None else says in (found or "")


RUN = replace(STATE, run_ids=("run",), log_start_offset=1)
GONE_BACK = {
    "nothing, one version later": (RUN, 1, None),
    "another version of the same number": (RUN, 0, "restored"),
    "one of a lower number": (RUN, -2, "restored"),
    "it does not have the run any more": (replace(RUN, run_ids=("other",)), 3, "restored"),
    "after so many commits that it may have forgotten": (replace(RUN, run_ids=tuple("others..")), 4, None),
    "it has forgotten none yet": (replace(RUN, run_ids=("other",)), 4, "restored"),
    "it ends before": (replace(RUN, log_end_offset=2), 9, "restored"),
    "it starts before": (replace(RUN, log_start_offset=0), 9, "restored"),
}


@pytest.mark.parametrize(("state", "commits", "says"), GONE_BACK.values(), ids=GONE_BACK)
def test_a_log_that_went_back_is_a_conflict(state, commits, says):
    """C44: a catalog that was restored counts on from an earlier version."""
    found = conflict(LOG.plan(RUN), state, commits, LOG.segments)
    assert found is None if says is None else says in (found or "")


VIEW = a_log("a=1 | b=2").segments
VIEWED = replace(LOG.state(dirty_from=2), view=View())
OTHER = replace(VIEW[1], path="other")
CHANGED = "the compacted view was changed"
SIDE_BY_SIDE = {
    "nothing happened": (0, LOG.segments, VIEW, None),
    "the view is gone": (0, LOG.segments, (), CHANGED),
    "the view lost a file": (0, LOG.segments, VIEW[:1], CHANGED),
    "the view grew": (0, LOG.segments, (*VIEW, OTHER), CHANGED),
    "a file of the view was rewritten": (0, LOG.segments, (VIEW[0], OTHER), CHANGED),
    "the backlog was trimmed below D, which the round does not read": (0, (S1, S2), VIEW, None),
    "a dirty segment is gone": (0, (S0, S1), VIEW, "s2"),
    "nothing happened to a round that trims": (1000, LOG.segments, VIEW, None),
    "what the round trims is gone, though the view names it": (1000, (S1, S2), VIEW, "s0"),
}


@pytest.mark.parametrize(("now_ms", "segments", "view", "says"), SIDE_BY_SIDE.values(), ids=SIDE_BY_SIDE)
def test_what_is_a_conflict_side_by_side(now_ms, segments, view, says):
    """C44, C33: at 1000 the round trims the whole backlog."""
    config = {"compaction_mode": "side-by-side", "cleanup_policy": "compact,delete", "retention_ms": 100}
    plan = LOG.plan(VIEWED, now_ms=now_ms, view=VIEW, **config)
    assert plan.gone == (LOG.segments if now_ms else ())
    found = conflict(plan, replace(VIEWED, log_start_offset=segments[0].base_offset), 1, segments, view)
    assert found is None if says is None else says in (found or "")
