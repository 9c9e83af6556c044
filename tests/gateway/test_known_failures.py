"""Failures of logs as a gateway knows them: what its own work changes at once, that of others after a while (C31)."""

from collections import Counter

import pytest

import lithify
from gateway.conftest import Served, orders
from lithify.api.lake import Lake
from lithify.gateway.server.live.events import Events
from lithify.gateway.server.live.watched import Watched
from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.ports.documents import DocumentKind
from lithify.reports.events import CleanerEvent, EventKind
from lithify.service.documents import put_failures
from lithify.service.look import known_failures
from lithify.service.look.known_failures import KEPT_MS, KnownFailures
from lithify.testing import FakeClock, memory_lake

FAILURE = LogFailure(8, 1, 2, 3, "no space", quarantined=True)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1_700_000_000_000)


@pytest.fixture
def lake(clock: FakeClock) -> Lake:
    return memory_lake(clock)


@pytest.fixture
def reads(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the failures of each topic were read."""
    counted: Counter[str] = Counter()
    real = type(lake.warehouse.store).get_document

    def get(store, topic, kind):
        if kind is DocumentKind.FAILURES:
            counted[str(topic.name)] += 1
        return real(store, topic, kind)

    monkeypatch.setattr(type(lake.warehouse.store), "get_document", get)
    return counted


def fail(lake: Lake, topic: str, failures: dict[int, LogFailure] | None = None) -> None:
    """As a cleaner of another machine stores it."""
    store = lake.warehouse.store
    put_failures(store, store.load(lake.topic(topic).topic_name), {0: FAILURE} if failures is None else failures)


def state_of(watched: Watched, topic: str) -> str:
    return next(row.state.value for row in watched.overview().topics if row.topic == topic)


def test_looks_read_each_again_only_after_a_while_and_not_all_at_once(lake, clock, reads):
    for number in range(100):
        lake.create_topic(f"t{number:02}")
    watched = Watched(lake)
    for _ in range(10):
        watched.overview()
    assert set(reads.values()) == {1}
    most = before = reads.total()
    for _ in range(10):
        clock.advance(KEPT_MS // 10)
        watched.overview()
        most, before = max(most - 100, reads.total() - before), reads.total()
    assert set(reads.values()) == {2}
    assert most < 40


def test_a_commit_has_them_read(lake, reads):
    lake.create_topic("orders")
    watched = Watched(lake)
    watched.overview()
    lake.topic("orders").append([lithify.Record(key=b"k", value=b"v")])
    watched.overview()
    assert reads == {"orders": 2}


def test_those_of_other_cleaners_are_seen_after_a_while(lake, clock):
    lake.create_topic("orders")
    watched = Watched(lake)
    assert state_of(watched, "orders") == "clean"
    fail(lake, "orders")
    assert state_of(watched, "orders") == "clean"
    clock.advance(KEPT_MS)
    assert state_of(watched, "orders") == "quarantined"
    fail(lake, "orders", {})
    clock.advance(KEPT_MS)
    assert state_of(watched, "orders") == "clean"


def test_those_of_its_own_cleaner_are_seen_at_once(lake):
    lake.create_topic("shop/orders")
    events = Events()
    watched = Watched(lake, events)
    watched.overview()
    fail(lake, "shop/orders")
    events.told(CleanerEvent(EventKind.STOPPED, 1, "c", None, {"reason": "x"}))
    assert state_of(watched, "shop/orders") == "clean"
    facts = {"partition": 0, "failures": 8, "error": "no space", "error_code": "Warehouse"}
    events.told(CleanerEvent(EventKind.QUARANTINED, 2, "c", "shop/orders", facts))
    assert state_of(watched, "shop/orders") == "quarantined"


def test_what_a_request_releases_is_seen_at_once(served: Served):
    orders(served.lake)
    fail(served.lake, "shop/orders")

    def shown() -> str:
        (row,) = served.ask("GET", "/api/v1/status").json()["topics"]
        return row["state"]

    assert shown() == "quarantined"
    assert served.ask("POST", "/api/v1/topics/shop%2Forders/release", json={}).status_code == 200
    assert shown() != "quarantined"


def test_a_recreated_topic_has_none_of_its_predecessor(lake):
    lake.create_topic("orders")
    known = KnownFailures(lake.warehouse)
    fail(lake, "orders")
    state = lake.warehouse.store.load(TopicName("default", "orders"))
    assert known.of(state) == {0: FAILURE}
    lake.delete_topic("orders")
    lake.create_topic("orders")
    again = lake.warehouse.store.load(TopicName("default", "orders"))
    assert again.version == state.version
    assert known.of(again) == {}


def test_what_was_read_while_it_changed_is_read_again(lake, reads, monkeypatch):
    lake.create_topic("orders")
    known = KnownFailures(lake.warehouse)
    state = lake.warehouse.store.load(TopicName("default", "orders"))
    real = known_failures.failures_of

    def overtaken(store, topic):
        found = real(store, topic)
        fail(lake, "orders")
        known.forget("orders")
        return found

    monkeypatch.setattr(known_failures, "failures_of", overtaken)
    assert known.of(state) == {}
    monkeypatch.undo()
    assert known.of(state) == {0: FAILURE}


def test_those_of_topics_that_are_gone_are_forgotten(lake):
    watched = Watched(lake)
    for number in range(9):
        lake.create_topic(f"t{number}")
        watched.overview()
        lake.delete_topic(f"t{number}")
    lake.create_topic("orders")
    watched.overview()
    assert list(watched._failures._reads) == ["orders"]
