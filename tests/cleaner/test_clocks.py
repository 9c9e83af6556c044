"""A cleaner whose clock is years off leaves every topic as it is and says so, until the clock is right (C46)."""

from __future__ import annotations

import pytest

from lithify.reports.events import EventKind
from lithify.service.clock_check import trust_clock
from lithify.service.group_reads import read_groups
from lithify.service.look.assessed_topic import assess_topic
from support.topics.cleaner_lake import CleanerLake

DAY_MS = 86_400_000
YEARS_MS = 10 * 365 * DAY_MS


@pytest.fixture
def lake() -> CleanerLake:
    """One topic that retention and rounds would empty, one that only rounds would touch."""
    lake = CleanerLake()
    topics = lake.topic("events", cleanup_policy="compact,delete", retention_ms=7 * DAY_MS), lake.topic("orders")
    for name in topics:
        lake.append(name, "a=1 a=2")
    lake.cleaner().work()
    for name in topics:
        lake.append(name, "c=1 c=2")
    return lake


def texts(lake: CleanerLake) -> dict[str, str]:
    return {name.topic: lake.text(name) for name in lake.warehouse.store.topics()}


def test_it_drops_nothing_and_says_why(lake):
    """C46: and no log is quarantined for it, however often it is tried."""
    before = texts(lake)
    lake.clock.advance(YEARS_MS)
    alpha = lake.cleaner()
    for _ in range(20):
        alpha.work()
        lake.wait(30 * 60_000)
    assert texts(lake) == before
    said = [event for event in alpha.events if event.kind in (EventKind.FAILED, EventKind.TROUBLE)]
    assert {event.topic for event in said} == {"events", "orders"}
    assert all("the clock is at" in str(event.facts) for event in said)
    assert not alpha.told(EventKind.QUARANTINED) and not alpha.told(EventKind.SWEPT)


def test_it_goes_on_where_a_user_confirms_that_the_clock_is_right(lake):
    """C46: for that topic alone."""
    lake.clock.advance(YEARS_MS)
    alpha = lake.cleaner()
    alpha.work()
    (events,) = (name for name in lake.warehouse.store.topics() if name.topic == "events")
    trust_clock(lake.warehouse, events)
    lake.wait(DAY_MS)
    alpha.work()
    assert texts(lake) == {"events": "", "orders": "a=2 c=1 c=2"}


def test_upkeep_goes_on_after_a_clock_that_was_years_ahead_is_set_right(lake):
    """C46: visits that were put off by that clock are not waited for."""
    alpha = lake.cleaner()
    for _ in range(3):
        alpha.work()
        lake.wait()
    lake.clock.advance(YEARS_MS)
    for _ in range(3):
        alpha.work()
        lake.wait()
    assert alpha.told(EventKind.TROUBLE) and not alpha.told(EventKind.EXPIRED)
    lake.clock.advance(-YEARS_MS)
    for _ in range(3):
        lake.wait(DAY_MS)
        alpha.work()
    assert {event.topic for event in alpha.told(EventKind.EXPIRED)} == {"events", "orders"}


def test_a_topic_whose_retention_failed_by_a_clock_that_was_years_ahead_is_looked_at_by_the_right_one(lake):
    """C46: it was left alone for years, also with new commits, as the time of its next try was of that clock."""
    old = lake.topic("old", cleanup_policy="delete", retention_ms=7 * DAY_MS)
    lake.append(old, "a=1")
    alpha = lake.cleaner()
    alpha.work()
    lake.wait()
    lake.clock.advance(YEARS_MS)
    alpha.work()
    assert "old" in {event.topic for event in alpha.told(EventKind.TROUBLE)}
    lake.clock.advance(-YEARS_MS)
    lake.wait()
    alpha.work()
    lake.wait(8 * DAY_MS)
    alpha.work()
    assert lake.text(old) == ""


def test_a_log_that_rests_by_a_clock_that_was_ahead_is_due_by_the_right_one(lake):
    finder, now_ms = lake.cleaner().cleaner.finder, lake.clock.now_ms()
    (state,) = (lake.warehouse.store.load(name) for name in lake.warehouse.store.topics() if name.topic == "orders")
    topic = assess_topic(lake.warehouse.store, state, read_groups(lake.warehouse, state), now_ms)
    assert finder.required(topic, now_ms).rounds == (0,)
    for rests_ms, rounds in ((now_ms, ()), (now_ms + YEARS_MS, (0,))):
        finder.let_rest(state.name, state.logs, rests_ms)
        assert finder.required(topic, now_ms).rounds == rounds
