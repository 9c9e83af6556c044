"""Which segments go whole, and how much of the others is past retention (C23 to C26, C28, C33)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.topic.log import LogState
from lithify.rules.compaction.eligible.retention import (
    expired_bytes,
    gone_segments,
    may_age,
    segments_awaiting_round,
    start_after,
    values_expire_before_ms,
)
from support.builders import a_log, a_segment, some_settings

OLD_AND_YOUNG = a_log("a=1!10 b=1!5 | c=1!20 | d=1!90 | e=1!10")


def gone(log, *, now_ms=0, dirty_from=0, start=0, policy="delete", **config):
    settings = some_settings(cleanup_policy=policy, **config)
    state = log.state(dirty_from=dirty_from, start=start)
    return [s.path for s in gone_segments(state, log.segments, settings, now_ms)]


BOTH = ("delete", "compact,delete")
ALL = ("compact", *BOTH)
IN_TIME = {"retention_ms": 50}
TRIMMED = {"compaction_mode": "side-by-side", "retention_ms": 0, "now_ms": 10**6}
GONE = {
    "C24: none while its newest record has the age of the retention": (BOTH, IN_TIME | {"now_ms": 60}, []),
    "C24: one whose newest record is older": (BOTH, IN_TIME | {"now_ms": 61}, ["s0"]),
    "C24: and the next, in place wherever D is": (BOTH, IN_TIME | {"now_ms": 71}, ["s0", "s1"]),
    "C24: an old one behind a young one waits": (BOTH, IN_TIME | {"now_ms": 100}, ["s0", "s1"]),
    "C24: until that goes": (BOTH, IN_TIME | {"now_ms": 141}, ["s0", "s1", "s2", "s3"]),
    "C24: with a retention of 0 all that is in the past": (
        BOTH,
        {"now_ms": 91, "retention_ms": 0},
        ["s0", "s1", "s2", "s3"],
    ),
    "C24: and none that is not": (BOTH, {"now_ms": 20, "retention_ms": 0}, ["s0"]),
    "C24: none by compact alone": (("compact",), {"now_ms": 10**9, "retention_ms": 1, "retention_bytes": 0}, []),
    "C25: none without a limit in time": (BOTH, {"now_ms": 10**15, "retention_ms": -1}, []),
    "C25: nor without one in bytes": (BOTH, {"now_ms": 0, "retention_bytes": -1}, []),
    "C26: those wholly below S, whatever the policy": (ALL, {"start": 3}, ["s0", "s1"]),
    "C26: but not one that straddles it": (ALL, {"start": 1}, []),
    "C33: none that the view does not have": (("compact,delete",), TRIMMED | {"dirty_from": 0}, []),
    "C33: nor one that straddles D": (("compact,delete",), TRIMMED | {"dirty_from": 1}, []),
    "C33: one below D": (("compact,delete",), TRIMMED | {"dirty_from": 2}, ["s0"]),
    "C33: all, where D is the end": (("compact,delete",), TRIMMED | {"dirty_from": 5}, ["s0", "s1", "s2", "s3"]),
}


@pytest.mark.parametrize(("policies", "given", "expected"), GONE.values(), ids=GONE)
def test_which_segments_go_whole(policies, given, expected):
    """C24 to C26, C33."""
    for policy in policies:
        assert gone(OLD_AND_YOUNG, policy=policy, **given) == expected


@pytest.mark.parametrize(
    ("limit", "expected"), [(0, ["s0", "s1", "s2"]), (100, ["s0", "s1"]), (101, ["s0"]), (200, ["s0"]), (201, [])]
)
def test_the_oldest_goes_while_the_rest_is_at_least_the_limit(limit, expected):
    """C24: by bytes; what is left is never below the limit."""
    sizes = (a_segment("s0", 0, 1), a_segment("s1", 1, 2), a_segment("s2", 2, 3))
    settings = some_settings(cleanup_policy="delete", retention_bytes=limit, retention_ms=-1)
    found = gone_segments(a_log("a=1 b=1 c=1").state(), sizes, settings, 0)
    assert [s.path for s in found] == expected


def test_either_limit_is_enough_and_one_makes_way_for_the_other():
    """C24: the first goes by size, the second by age, the third by neither."""
    big = (
        a_segment("big", 0, 10, max_timestamp_ms=10**6),
        a_segment("old", 10, 11),
        a_segment("young", 11, 12, max_timestamp_ms=10**6),
    )
    settings = some_settings(cleanup_policy="delete", retention_bytes=200, retention_ms=50)
    found = gone_segments(a_log("").state(), big, settings, 10**6)
    assert [s.path for s in found] == ["big", "old"]


def test_what_waits_for_a_round_is_what_would_go_without_a_view():
    """C33: behind those that go; in place nothing waits."""
    config = {"cleanup_policy": "compact,delete", "retention_ms": 50}
    state = OLD_AND_YOUNG.state(dirty_from=2)
    beside = some_settings(compaction_mode="side-by-side", **config)
    assert [s.path for s in segments_awaiting_round(state, OLD_AND_YOUNG.segments, beside, 100)] == ["s1"]
    assert segments_awaiting_round(state, OLD_AND_YOUNG.segments, beside, 61) == ()
    assert segments_awaiting_round(state, OLD_AND_YOUNG.segments, some_settings(**config), 100) == ()


def test_the_log_start_moves_to_the_end_of_what_went_and_never_back():
    """C24."""
    state = OLD_AND_YOUNG.state(start=3)
    assert start_after(state, ()) == 3
    assert start_after(state, OLD_AND_YOUNG.segments[:1]) == 3
    assert start_after(state, OLD_AND_YOUNG.segments[:3]) == 4
    gap = a_log("a=1@0 | b=1@10")
    assert start_after(gap.state(), gap.segments[:1]) == 1


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"cleanup_policy": "compact,delete"}, 950),
        ({"cleanup_policy": "compact"}, None),
        ({"cleanup_policy": "delete"}, None),
        ({"cleanup_policy": "compact,delete", "retention_ms": -1}, None),
        ({"cleanup_policy": "compact,delete", "compaction_mode": "side-by-side"}, None),
    ],
)
def test_single_records_age_only_in_rounds_in_place(config, expected):
    """C24, C33: trimming the backlog removes nothing from the view."""
    assert values_expire_before_ms(some_settings(**{"retention_ms": 50} | config), 1000) == expected


def test_expired_bytes_are_a_share_of_segments_wholly_below_the_horizon():
    """C28: timestamps are taken to be spread evenly, since metadata tells only their range."""
    settings = some_settings(cleanup_policy="compact,delete", retention_ms=50)
    segments = (
        a_segment("half", 0, 10, min_timestamp_ms=1, max_timestamp_ms=100),
        a_segment("none", 10, 20, min_timestamp_ms=51, max_timestamp_ms=60),
        a_segment("all", 20, 30, min_timestamp_ms=1, max_timestamp_ms=50),
        a_segment("above", 30, 40, min_timestamp_ms=1, max_timestamp_ms=50),
    )
    state = LogState(0, log_end_offset=40)
    assert expired_bytes(state, segments, 30, settings, 101) == 500 + 0 + 1000
    assert expired_bytes(state, segments, 39, settings, 101) == 1500
    assert expired_bytes(state, segments, 40, settings, 101) == 2500
    assert expired_bytes(state, segments, 40, some_settings(), 10**9) == 0


def test_what_a_round_has_looked_at_is_counted_no_more():
    """C28, C21: old tombstones stay for their age, and the log is not due for them; above D all counts."""
    settings = some_settings(cleanup_policy="compact,delete", retention_ms=50)
    segments = (
        a_segment("clean", 0, 10, min_timestamp_ms=1, max_timestamp_ms=100),
        a_segment("dirty", 10, 20, min_timestamp_ms=1, max_timestamp_ms=100),
    )
    state = LogState(0, first_dirty_offset=10, log_end_offset=20, aged_before_ms=51)
    for now_ms, expected in ((101, 0 + 500), (111, 100 + 600), (90, 0 + 390)):
        assert expired_bytes(state, segments, 20, settings, now_ms) == expected
    assert expired_bytes(replace(state, aged_before_ms=0), segments, 10, settings, 101) == 500


def test_less_than_a_record_of_what_a_round_has_left_is_not_counted():
    """C28, C41: or an old tombstone among young values would make the log due for ever, with a ratio of 0."""
    settings = some_settings(cleanup_policy="compact,delete", retention_ms=50)
    segment = a_segment(end=10, min_timestamp_ms=1, max_timestamp_ms=1000)
    state = LogState(0, first_dirty_offset=10, log_end_offset=10, aged_before_ms=51)
    assert expired_bytes(state, (segment,), 10, settings, 200) == 0
    assert expired_bytes(state, (segment,), 10, settings, 201) == 100
    assert expired_bytes(replace(state, aged_before_ms=None), (segment,), 10, settings, 62) == 11


@pytest.mark.parametrize(
    ("before_ms", "aged_before_ms", "expected"),
    [
        (None, None, False),
        (10, None, False),
        (11, None, True),
        (11, 11, False),
        (12, 11, True),
        (40, 31, False),
        (40, 30, True),
    ],
)
def test_a_segment_may_have_values_that_age_as_far_as_its_timestamps_tell(before_ms, aged_before_ms, expected):
    """C24: from 10 to 30 here; those of before the last round's limit are gone."""
    segment = a_segment(min_timestamp_ms=10, max_timestamp_ms=30)
    assert may_age(segment, before_ms, aged_before_ms) is expected
