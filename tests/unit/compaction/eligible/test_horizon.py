"""The compaction horizon: what limits it, to the very record and millisecond (C14, C15)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.rules.compaction.eligible.horizon import Horizon, compaction_horizon
from support.builders import a_log, some_settings

LOG = a_log("a=1!100 b=2!100 | c=3!200 | d=4!300 e=5!300")
"""Offsets 0 to 4 in three segments that begin at 0, 2 and 3; newest timestamps 100, 200, 300."""
SIZES = tuple(s.size_bytes for s in LOG.segments)


def horizon(log=LOG, *, now_ms=1000, dirty_from=0, start=0, **config):
    state = log.state(dirty_from=dirty_from, start=start)
    return compaction_horizon(state, log.segments, some_settings(**config), now_ms)


AGE = {"min_compaction_lag_ms": 100}
BY_AGE = {
    199: Horizon(0, "min.compaction.lag.ms", "s0"),  # the first segment is 99 ms old: too young
    200: Horizon(2, "min.compaction.lag.ms", "s1"),  # exactly as old as the lag is old enough
    299: Horizon(2, "min.compaction.lag.ms", "s1"),
    300: Horizon(3, "min.compaction.lag.ms", "s2"),
    399: Horizon(3, "min.compaction.lag.ms", "s2"),
    400: Horizon(5, "log end"),
}


@pytest.mark.parametrize("now_ms", BY_AGE)
def test_the_age_limit_is_the_first_segment_that_is_too_young(now_ms):
    """C14: it is named, so that a segment with a far timestamp can be found."""
    assert horizon(now_ms=now_ms, **AGE) == BY_AGE[now_ms]


HALF = {"min_compaction_lag_ms": 500}
CASES = {
    "without a lag it is the log end (C15)": ({}, Horizon(5, "log end")),
    "that of an empty log as well": ({"log": a_log("")}, Horizon(0, "log end")),
    "an old segment behind a young one does not pull it": (
        {"log": a_log("a=1!100 | b=2!900 | c=3!100 | d=4!900"), **HALF},
        Horizon(1, "min.compaction.lag.ms", "s1"),
    ),
    "the newest record of a segment counts": (
        {"log": a_log("a=1!900 b=1!100 | c=2!100"), **HALF},
        Horizon(0, "min.compaction.lag.ms", "s0"),
    ),
    "clean segments are not asked": (
        {"log": a_log("a=1!900 | b=2!100"), "dirty_from": 1, **HALF},
        Horizon(2, "log end"),
    ),
    "a segment on both sides of D is asked, and H is never below D": (
        {"log": a_log("a=1!900 b=2!900 | c=3!100"), "start": 1, **HALF},
        Horizon(1, "min.compaction.lag.ms", "s0"),
    ),
    "a clock that goes back does not take it below D": (
        {"dirty_from": 3, "now_ms": 0, **AGE},
        Horizon(3, "min.compaction.lag.ms", "s2"),
    ),
    "nor does a limit in bytes": (
        {"dirty_from": 3, "min_compaction_lag_bytes": 10**6},
        Horizon(3, "min.compaction.lag.bytes"),
    ),
    "the smallest of two limits counts, that in time": (
        {"now_ms": 250, **AGE, "min_compaction_lag_bytes": SIZES[2]},
        Horizon(2, "min.compaction.lag.ms", "s1"),
    ),
    "and that in bytes": (
        {"now_ms": 450, **AGE, "min_compaction_lag_bytes": SIZES[2]},
        Horizon(3, "min.compaction.lag.bytes"),
    ),
    "of equal ones that in time, which passes by itself": (
        {"now_ms": 350, **AGE, "min_compaction_lag_bytes": SIZES[2]},
        Horizon(3, "min.compaction.lag.ms", "s2"),
    ),
}


@pytest.mark.parametrize(
    ("lag", "offset"),
    [
        (SIZES[2] - 1, 5),  # not even the newest segment is small enough to be held
        (SIZES[2], 3),  # exactly that many bytes are held
        (SIZES[2] + SIZES[1] - 1, 3),
        (SIZES[2] + SIZES[1], 2),
        (sum(SIZES) - 1, 2),
        (sum(SIZES), 0),
    ],
)
def test_the_bytes_limit_is_the_oldest_segment_from_which_on_the_log_has_at_most_that_many(lag, offset):
    """C14."""
    found = horizon(min_compaction_lag_bytes=lag)
    assert found.offset == offset
    assert found.limited_by == ("log end" if offset == 5 else "min.compaction.lag.bytes")


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES)
def test_where_the_horizon_is(given, expected):
    """C14, C15."""
    assert horizon(**given) == expected


def test_gaps_at_the_end_of_the_log_do_not_hold_it():
    """C14, C2: E may lie behind the last record that is left."""
    log = a_log("a=1 b=2")
    state = log.state()
    state = replace(state, log_end_offset=10)
    assert compaction_horizon(state, log.segments, some_settings(), 0).offset == 10
