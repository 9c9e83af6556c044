"""A cleaner whose clock is years off leaves every topic as it is and says so, until the clock is right (C46)."""

from __future__ import annotations

import pytest

from lithify.reports.events import EventKind
from lithify.service.clock_check import trust_clock
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
    assert all("the clock says" in str(event.facts) for event in said)
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
