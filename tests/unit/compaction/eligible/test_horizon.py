"""The compaction horizon: what limits it, to the very record and millisecond (C14, C15)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.compaction.eligible.horizon import Horizon, compaction_horizon
from support.builders import a_log, some_settings

LOG = a_log("a=1!100 b=2!100 | c=3!200 | d=4!300 e=5!300")
"""Offsets 0 to 4 in three segments that begin at 0, 2 and 3; newest timestamps 100, 200, 300."""


def horizon(log=LOG, *, now_ms=1000, dirty_from=0, start=0, **config):
    state = log.state(dirty_from=dirty_from, start=start)
    return compaction_horizon(state, log.segments, some_settings(**config), now_ms)


def test_without_a_lag_it_is_the_log_end():
    """C14, C15: there is no active segment; the last record appended is within reach."""
    assert horizon() == Horizon(5, "log end")


def test_an_empty_log_has_its_horizon_at_its_end():
    """C14."""
    assert horizon(a_log("")) == Horizon(0, "log end")


@pytest.mark.parametrize(
    ("now_ms", "offset"),
    [
        (199, 0),  # the first segment is 99 ms old: too young
        (200, 2),  # exactly as old as the lag is old enough
        (299, 2),
        (300, 3),
        (399, 3),
        (400, 5),
    ],
)
def test_the_age_limit_is_the_first_segment_that_is_too_young(now_ms, offset):
    """C14: age equal to the lag is old enough."""
    found = horizon(now_ms=now_ms, min_compaction_lag_ms=100)
    assert found.offset == offset
    assert found.limited_by == ("log end" if offset == 5 else "min.compaction.lag.ms")


def test_the_age_limit_names_the_segment_that_holds_it():
    """C14: a segment with a far timestamp can be found by whoever asks why."""
    assert horizon(now_ms=250, min_compaction_lag_ms=100).held_by == "s1"
    assert horizon(now_ms=1000, min_compaction_lag_ms=100).held_by is None


def test_only_the_first_segment_that_is_too_young_counts():
    """C14: an older segment behind a young one does not pull the horizon up or down."""
    log = a_log("a=1!100 | b=2!900 | c=3!100 | d=4!900")
    assert horizon(log, min_compaction_lag_ms=500).offset == 1


def test_the_newest_timestamp_of_a_segment_counts_not_the_last():
    """C14: its largest timestamp makes a segment too young."""
    log = a_log("a=1!900 b=2!100 | c=3!100")
    assert horizon(log, min_compaction_lag_ms=500) == Horizon(0, "min.compaction.lag.ms", "s0")


def test_clean_segments_are_not_asked_for_their_age():
    """C14: only segments with an offset at or above D are."""
    log = a_log("a=1!900 | b=2!100")
    assert horizon(log, dirty_from=1, min_compaction_lag_ms=500).offset == 2


def test_a_segment_on_both_sides_of_the_first_dirty_offset_is_asked():
    """C14: after the log start has moved into a segment, its upper part is dirty."""
    log = a_log("a=1!900 b=2!900 | c=3!100")
    found = horizon(log, start=1, min_compaction_lag_ms=500)
    assert found == Horizon(1, "min.compaction.lag.ms", "s0")  # never below D


def test_never_below_the_first_dirty_offset_when_the_clock_goes_back():
    """C14: if a limit lies below D, nothing new is touched."""
    found = horizon(dirty_from=3, now_ms=0, min_compaction_lag_ms=100)
    assert found == Horizon(3, "min.compaction.lag.ms", "s2")
    assert horizon(dirty_from=3, min_compaction_lag_bytes=10**6).offset == 3


SIZES = tuple(s.size_bytes for s in LOG.segments)


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


def test_the_smallest_limit_counts():
    """C14."""
    by_age = {"min_compaction_lag_ms": 100}
    by_bytes = {"min_compaction_lag_bytes": SIZES[2]}
    assert horizon(now_ms=250, **by_age, **by_bytes) == Horizon(2, "min.compaction.lag.ms", "s1")
    assert horizon(now_ms=450, **by_age, **by_bytes) == Horizon(3, "min.compaction.lag.bytes")


def test_of_equal_limits_the_age_is_named():
    """C14: it is the one that passes by itself."""
    found = horizon(now_ms=350, min_compaction_lag_ms=100, min_compaction_lag_bytes=SIZES[2])
    assert found == Horizon(3, "min.compaction.lag.ms", "s2")


def test_gaps_at_the_end_of_the_log_do_not_hold_it():
    """C14, C2: E may lie behind the last record that is left."""
    log = a_log("a=1 b=2")
    state = log.state()
    state = replace(state, log_end_offset=10)
    assert compaction_horizon(state, log.segments, some_settings(), 0).offset == 10
