"""Which clock may drop anything, and what commits vouch for (C46)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.rules.lifecycle.clocks import BEHIND_MS, LEAP_MS, clock_fault, vouched_ms
from support.builders import some_settings
from support.topics.memory_topic import MemoryTopic

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS


def a_topic(**config):
    return replace(MemoryTopic().state, settings=some_settings(**config), clock_ms=NOW_MS)


def test_the_clock_may_be_as_far_ahead_of_an_idle_topic_as_its_settings_make_it_wait():
    """C46: however long its settings make it wait, and two years more."""
    for config, rest_ms in [({}, YEAR_MS), ({"cleanup_policy": "delete", "retention_ms": 5 * YEAR_MS}, 6 * YEAR_MS)]:
        assert clock_fault(a_topic(**config), NOW_MS + rest_ms) is None


def test_a_clock_years_ahead_drops_nothing():
    """C46: and the error has the time that it is far from."""
    fault = clock_fault(a_topic(), NOW_MS + 10 * YEAR_MS)
    assert fault is not None
    assert fault.startswith("the clock is at 2037-01-12T08:00:00.000Z, years after the last commit of the topic")
    assert fault.endswith("at 2027-01-15T08:00:00.000Z")


@pytest.mark.parametrize(("now_ms", "fits"), [(NOW_MS - BEHIND_MS, True), (NOW_MS - BEHIND_MS - 1, False)])
def test_a_clock_far_behind_a_commit_drops_nothing(now_ms, fits):
    """C46: one of the two is wrong, and steps and versions have the time of the other."""
    fault = clock_fault(a_topic(), now_ms)
    assert (fault is None) == fits
    assert fits or "before a commit of the topic" in fault


def test_where_ahead_begins():
    topic = a_topic(delete_retention_ms=0, versions_retention_ms=0, sweep_grace_ms=3 * DAY_MS)
    edge = NOW_MS + LEAP_MS + 3 * DAY_MS
    assert clock_fault(topic, edge) is None and clock_fault(topic, edge + 1) is not None


@pytest.mark.parametrize(("groups", "days"), [("", 1), ("g", 9)])
def test_where_ahead_begins_while_groups_hold_tombstones(groups, days):
    """C46, C61: nothing has to happen until the longest time is over."""
    least = {"delete_retention_ms": DAY_MS, "versions_retention_ms": 0, "sweep_grace_ms": 60_000}
    topic = a_topic(tombstone_hold_groups=groups, tombstone_hold_max_ms=9 * DAY_MS, **least)
    edge = NOW_MS + LEAP_MS + days * DAY_MS
    assert clock_fault(topic, edge) is None and clock_fault(topic, edge + 1) is not None


def test_a_commit_by_a_clock_that_leaps_vouches_for_nothing():
    """C46: else a producer with the same wrong clock would let a cleaner drop everything."""
    topic = a_topic()
    assert vouched_ms(topic, NOW_MS + 10 * YEAR_MS) == NOW_MS
    assert vouched_ms(topic, NOW_MS - 10 * DAY_MS) == NOW_MS
    assert vouched_ms(topic, NOW_MS + YEAR_MS) == NOW_MS + YEAR_MS


def test_a_topic_that_knows_no_time_begins_with_its_next_commit():
    """C46: a new one, or one of an earlier format."""
    topic = replace(a_topic(), clock_ms=None)
    assert clock_fault(topic, 0) is None
    assert vouched_ms(topic, 5) == 5
