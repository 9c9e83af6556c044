"""When a log may be due, by its state alone (C14, C20, C21, C24, C28, C43, C53); `tests/properties` has the proof."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.model.segment import Volume
from lithify.model.topic.log import HeldTombstones, LogState, TombstoneStep, View
from lithify.rules.schedule.assessment import Due
from lithify.rules.schedule.idle import assess_idle, may_be_due_at_ms
from support.builders import some_settings
from support.tables import cases_of

NOW_MS = 1000
STEPS = (TombstoneStep(4, 100, 1), TombstoneStep(9, 300, 1))


def a_state(clean=0, dirty=0, oldest_ms=0, **changes):
    """A log of ten offsets, of which nine are clean, with so many bytes clean and dirty."""
    state = LogState(
        0,
        first_dirty_offset=9 if dirty else 10,
        log_end_offset=10,
        clean=Volume(9, clean) if clean else Volume(),
        dirty=Volume(1, dirty) if dirty else Volume(),
        oldest_dirty_timestamp_ms=oldest_ms if dirty else None,
    )
    return replace(state, **changes)


COVERED = a_state(100, 0, steps=STEPS)
NO_ROUND_YET = LogState(0, log_end_offset=10, dirty=Volume(10, 100), oldest_dirty_timestamp_ms=800)
EMPTY_LIMITS = {"retention_bytes": 0, "retention_ms": 0, "max_compaction_lag_ms": 1}
EXPIRY = {"delete_retention_ms": 500}
AGED = {"min_cleanable_dirty_ratio": 1, "retention_ms": 500}
COMPACTS, DELETES, BOTH = ({"cleanup_policy": policy} for policy in ("compact", "delete", "compact,delete"))

CASES = {
    "an empty log waits for a commit": [
        (LogState(0), NOW_MS, EMPTY_LIMITS | policy, None) for policy in (COMPACTS, DELETES, BOTH)
    ],
    "so does a clean one without tombstones": [
        (a_state(100, 0), NOW_MS, {"retention_ms": -1} | policy, None) for policy in (COMPACTS, BOTH)
    ],
    "dirt counts above the ratio": [
        (a_state(100, 100), NOW_MS, {}, None),
        (a_state(100, 101), NOW_MS, {}, NOW_MS),
    ],
    "side by side the view is what is clean": [
        (a_state(1000, 100, view=View(Volume(1, 50))), NOW_MS, {"compaction_mode": "side-by-side"}, NOW_MS),
    ],
    "dirt counts above the threshold": [
        (a_state(1000, 50), NOW_MS, {"compaction_threshold_bytes": 50}, None),
        (a_state(1000, 51), NOW_MS, {"compaction_threshold_bytes": 50}, NOW_MS),
    ],
    "a deadline is known": [
        (a_state(1000, 1, 100), now_ms, {"max_compaction_lag_ms": 500}, expected)
        for now_ms, expected in ((0, 601), (601, 601), (700, 700))
    ],
    "a minimum lag only delays": [
        (a_state(1, 100, 900), NOW_MS, {"min_compaction_lag_ms": 500}, 1400),
        (a_state(1, 100, 900), NOW_MS, {"min_compaction_lag_ms": 500, "max_compaction_lag_ms": 500}, 1400),
        (a_state(1, 100, 900), NOW_MS, {"min_compaction_lag_bytes": 99}, NOW_MS),
        (a_state(1, 100, 900), NOW_MS, {"min_compaction_lag_bytes": 100, "max_compaction_lag_ms": 0}, None),
    ],
    "tombstones expire unless they are held, whatever the horizon": [
        (replace(COVERED, held=held), 0, EXPIRY | lag, expected)
        for lag in ({}, {"min_compaction_lag_ms": 50})
        for held, expected in (
            (None, 600),
            (HeldTombstones(4, 10), 800),
            (HeldTombstones(4, 9), 600),
            (HeldTombstones(9, 10), None),
        )
    ],
    "none does while whole entries may hide what they delete": [
        (replace(COVERED, clean=Volume(9, 100, 1)), 0, EXPIRY, None),
        (replace(COVERED, dirty=Volume(1, 1, 1)), 0, EXPIRY, 600),
        (replace(COVERED, dirty=Volume(1, 1, 1)), 0, EXPIRY | {"compaction_strategy": "timestamp"}, None),
        (replace(COVERED, clean=Volume(9, 100, 1), view=View(Volume(1, 90))), 0, EXPIRY, 600),
        (replace(COVERED, view=View(Volume(1, 90, 1))), 0, EXPIRY, None),
    ],
    "a required round is due where there are rounds": [
        (a_state(100, 0, round_required="changed: null.key"), NOW_MS, {}, NOW_MS),
        (a_state(100, 0, round_required="changed: null.key"), NOW_MS, DELETES | {"retention_ms": -1}, None),
    ],
    "where no round has been the oldest record tells when age counts": [
        (NO_ROUND_YET, NOW_MS, AGED | limit | policy, expected)
        for policy in (DELETES, BOTH)
        for limit, expected in (({}, 1301), ({"retention_bytes": 101}, 1301), ({"retention_bytes": 100}, NOW_MS))
    ],
    "where one has been the segments are needed to tell it": [
        (a_state(100, 0), NOW_MS, {"retention_ms": 10**9} | policy, NOW_MS) for policy in (DELETES, BOTH)
    ],
    "without limits only what lies below the start can go": [
        (a_state(100, 0), NOW_MS, DELETES | {"retention_ms": -1}, None),
        (a_state(100, 0, log_start_offset=5), NOW_MS, DELETES | {"retention_ms": -1}, NOW_MS),
        (a_state(100, 0, log_start_offset=5), NOW_MS, BOTH | {"retention_ms": -1}, NOW_MS),
        (a_state(100, 0, log_start_offset=5), NOW_MS, {}, None),
    ],
}


@pytest.mark.parametrize(
    ("state", "now_ms", "config", "expected"),
    cases_of(CASES),
)
def test_when_a_log_may_be_due(state, now_ms, config, expected):
    """None where only a commit can make it so."""
    assert may_be_due_at_ms(state, some_settings(**config), now_ms) == expected


@pytest.mark.parametrize(
    ("clean", "dirty", "config", "expected", "due_at_ms"),
    [
        (100, 0, {}, "nothing dirty", None),
        (100, 50, {}, "dirty ratio 0.33 <= 0.5", None),
        (100, 200, {"min_compaction_lag_ms": 500}, "dirty records are too young", 1400),
        (0, 200, {"cleanup_policy": "delete", "retention_ms": 500}, "nothing is past retention", 1401),
    ],
)
def test_a_log_that_its_state_alone_says_is_not_due_says_why(clean, dirty, config, expected, due_at_ms):
    state, settings = a_state(clean=clean, dirty=dirty, oldest_ms=900), some_settings(**config)
    found = assess_idle(state, settings, NOW_MS)
    assert found.verdict == Due(False, expected, due_at_ms)
    assert (found.dirtiness.clean_bytes, found.dirtiness.dirty_bytes, found.horizon.offset) == (clean, dirty, 10)


def test_a_log_that_may_be_due_is_not_assessed_without_its_segments():
    assert assess_idle(a_state(clean=100, dirty=101), some_settings(), NOW_MS) is None
