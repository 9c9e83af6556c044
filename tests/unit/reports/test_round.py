"""Reports, plans, states and findings as JSON, which scripts rely on (C30, C42)."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.reports.rounds.plan import LogPlanReport, PlanReport
from lithify.reports.rounds.round import LogReport, Losers, RoundReport
from lithify.reports.rounds.stored_round import round_from_json, round_to_json
from lithify.reports.topic_space import Space

NUMBERS = st.integers(0, 2**63 - 1)
LOSERS = st.builds(Losers, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
LOG_REPORTS = st.builds(
    LogReport,
    partition=NUMBERS,
    first_dirty_offset=NUMBERS,
    first_dirty_offset_after=NUMBERS,
    horizon=NUMBERS,
    horizon_limited_by=st.text(),
    records_in=NUMBERS,
    losers=LOSERS,
    phases_ms=st.dictionaries(st.text(), NUMBERS),
    changed=st.booleans(),
    error=st.none() | st.text(),
)
REPORTS = st.builds(
    RoundReport,
    topic=st.text(),
    version=NUMBERS,
    changed=st.booleans(),
    logs=st.lists(LOG_REPORTS, max_size=3).map(tuple),
    duration_ms=NUMBERS,
    now_ms=NUMBERS,
    now_given=st.booleans(),
    run_id=st.text(),
)


@given(REPORTS)
def test_a_report_reads_back_as_it_was_written(report):
    """C42: it survives restarts as JSON."""
    assert round_from_json(json.loads(json.dumps(round_to_json(report)))) == report


def a_report(**log):
    logs = (LogReport(0, 1, 2, 2, "log end", **log),)
    return RoundReport("orders", 7, True, logs, 12, 1000)


def test_a_report_of_a_later_version_is_read_as_far_as_it_is_known():
    """C42."""
    data = json.loads(json.dumps(round_to_json(a_report()))) | {"something": "new"}
    data["logs"][0] |= {"something": "new"}
    data["logs"][0]["losers"] |= {"something_new": 3}
    assert round_from_json(data) == a_report()


def test_what_is_stored_of_a_report_is_all_but_the_space():
    """A field that is only printed is to be named here, and `stored_round` then leaves it out."""
    assert [f.name for f in fields(RoundReport)] == list(round_to_json(a_report()))
    assert [f.name for f in fields(LogReport)] == list(round_to_json(a_report())["logs"][0])
    assert round_to_json(replace(a_report(), space=Space(1, 1, 0, 0, 0, None)))["space"] is None


@pytest.mark.parametrize(
    "altered", [{"partition": "0"}, {"changed": 1}, {"held_by": [1]}, {"missed_by": "g"}, {"losers": {"no_key": None}}]
)
def test_a_document_with_other_types_is_none(altered):
    data = json.loads(json.dumps(round_to_json(a_report())))
    data["logs"][0] |= altered
    with pytest.raises(TypeError):
        round_from_json(data)


PROMISED = """
    partition first_dirty_offset first_dirty_offset_after horizon horizon_limited_by records_in records_out keys
    tombstones_in tombstones_out losers segments_in segments_kept segments_rewritten segments_merged segments_written
    bytes_in bytes_out bytes_read bytes_written phases_ms error
"""


def test_a_report_has_the_keys_of_the_command_line():
    """C42: the contract of `compact --json`."""
    data = a_report().to_json()
    assert {"topic", "version", "changed", "logs", "duration_ms"} <= set(data)
    assert set(PROMISED.split()) <= set(data["logs"][0])
    assert set(data["logs"][0]["losers"]) == {
        "superseded",
        "expired_tombstone",
        "no_key",
        "past_retention",
        "below_start",
    }


def test_a_plan_asks_for_the_space_that_its_rounds_may_write():
    """C30, C42: needed until the old version goes."""
    log = LogPlanReport(
        partition=0,
        log_start_offset=0,
        first_dirty_offset=0,
        horizon=5,
        horizon_limited_by="log end",
        horizon_held_by=None,
        log_end_offset=5,
        log_start_offset_after=0,
        records_in=5,
        bytes_in=100,
        segments_in=1,
        segments_gone=0,
        segments_scanned=1,
        segments_rewritten_at_most=1,
        bytes_read_at_most=150,
        bytes_written_at_most=110,
        tombstones_expire_below=0,
        values_expire_before_ms=None,
        held_by=(),
        idle=False,
    )
    plan = PlanReport("orders", 3, (log, log), 0)
    assert plan.extra_bytes_needed == 220
    assert json.loads(json.dumps(plan.to_json()))["extra_bytes_needed"] == 220
