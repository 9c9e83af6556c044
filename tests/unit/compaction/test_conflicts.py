"""Whether a round may still commit on a log that moved on (C44), and on records that were appended (C20)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.segment import Mask
from lithify.model.topic.log import View
from lithify.rules.compaction.outcome import LogOutcome
from lithify.rules.compaction.round_commit import LATE_APPEND, conflict, late_append
from support.builders import a_log, some_settings
from support.topics.pure_rounds import PureLog, a_pure_log

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
    "a source has a mask now": (STATE, (S0, replace(S1, mask=Mask("m", 1, 1)), S2), "s1"),
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
    "a segment of the view has a mask now": (
        0,
        LOG.segments,
        (VIEW[0], replace(VIEW[1], mask=Mask("m", 1, 1))),
        CHANGED,
    ),
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


BY_TIME = {"compaction_strategy": "timestamp", "delete_retention_ms": 0}
BY_HEADER = {"compaction_strategy": "header", "compaction_strategy_header": "v", "delete_retention_ms": 0}


def is_late(outcome: LogOutcome, drawn: str, log: PureLog, **facts: object) -> bool:
    """Whether it must be planned again once these segments were appended, of which `facts` say otherwise."""
    appended = a_log(drawn, first_offset=outcome.plan.base.log_end_offset).segments
    found = late_append(outcome, (*log.segments, *(replace(s, **facts) for s in appended)))  # type: ignore[arg-type]
    assert found in (None, LATE_APPEND)
    return found is not None


LATE = {
    "nothing": ("", False),
    "an older record": ("a=2!299", True),
    "of another key that may be a tombstone's": ("b=2!299", True),
    "an older one among newer ones": ("b=2!400 a=2!100", True),
    "an older one in the second segment": ("b=2!400 | a=2!100", True),
    "of an equal timestamp, whose later offset wins": ("a=2!300", False),
    "newer ones, as of a producer in order": ("a=2!301 b=2!302", False),
    "an older one of a key above all tombstones": ("n=2!1", False),
    "an older one of a key below all tombstones": ("A=2!1", False),
    "an older one without a key": ("·=2!1", False),
    "an older chunk, whose key is in no bounds": ("□n=x!299", True),
    "a newer chunk": ("□a=x!301", False),
    "an entry that may hide records of any age": ("□=x!999", True),
}


@pytest.mark.parametrize(("drawn", "late"), LATE.values(), ids=LATE)
def test_what_comes_too_late_for_a_round_that_drops_tombstones(drawn, late):
    """C20, C44: the tombstones that it drops have keys from a to m, and are of 300 at the latest."""
    log = a_pure_log("a=∅!100 m=1!300")
    assert is_late(log.round(some_settings(**BY_TIME), 1000), drawn, log) is late


def test_unknown_bounds_of_keys_may_have_any():
    """C20, C44."""
    log = a_pure_log("b=∅!100 m=1!300")
    outcome = log.round(some_settings(**BY_TIME), 1000)
    assert is_late(outcome, "a=1!1", log, max_key=None)
    assert not is_late(outcome, "z=1!1", log, max_key=None)
    unknown = replace(outcome.plan.dirty[0], max_key=None)
    assert is_late(replace(outcome, plan=replace(outcome.plan, dirty=(unknown,))), "z=1!1", log)


def test_timestamps_say_nothing_of_orders_in_headers():
    """C20, C44, C10."""
    log = a_pure_log("a=∅!100#5 m=1!300#5")
    outcome = log.round(some_settings(**BY_HEADER), 1000)
    assert is_late(outcome, "b=1!999#9", log)
    assert not is_late(outcome, "n=1!1#1", log)


UNTOUCHED = {
    "the offset decides": {"delete_retention_ms": 0},
    "no tombstone has expired": BY_TIME | {"delete_retention_ms": 1000},
}


@pytest.mark.parametrize("config", UNTOUCHED.values(), ids=UNTOUCHED)
def test_a_round_that_nothing_comes_too_late_for(config):
    """C44: an append is no conflict."""
    log = a_pure_log("a=∅!100 a=1!50 m=1!300")
    outcome = log.round(some_settings(**config), 1000)
    assert outcome.changes and not is_late(outcome, "a=2!1", log)


def test_only_segments_that_lost_expired_tombstones_count():
    """C20, C44: the second tombstone stays, so what it beats may come."""
    log, settings = a_pure_log("a=∅!100"), some_settings(**BY_TIME | {"delete_retention_ms": 100})
    log.round(settings, 1000)
    log.draw("a=1!900 b=1!800 b=∅!900")
    outcome = log.round(settings, 1100)
    assert (outcome.deletes_dropped_below, [s.path for s in outcome.had_expired_deletes]) == (0, [])
    log = a_pure_log("a=∅!100")
    log.round(settings, 1000)
    log.draw("b=1!800 b=∅!900")
    outcome = log.round(settings, 1100)
    assert (outcome.deletes_dropped_below, [s.path for s in outcome.had_expired_deletes]) == (1, ["s0"])
    assert not is_late(outcome, "a=1!100", log)
    assert is_late(outcome, "a=1!99", log)
