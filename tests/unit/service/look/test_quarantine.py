"""Logs whose rounds fail: listed worst first, and released (C31)."""

from __future__ import annotations

import pytest

from lithify.errors import RefusedError, UnknownTopicError, WarehouseError
from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.reports.quarantine import UnreadableTopic
from lithify.service.documents import failures_of, put_failures
from lithify.service.look.quarantine import failing_logs, release
from support.topics.memory_topic import ORDERS, a_warehouse

OTHER = TopicName("default", "other")
ONCE = LogFailure(1, 5, 5, 20, "no room")
OFTEN = LogFailure(4, 1, 30, 40, "no room at all")
STUCK = LogFailure(8, 2, 50, 60, "broken", quarantined=True)


@pytest.fixture
def warehouse():
    return a_warehouse(ORDERS, OTHER, partitions=4, now_ms=1000)


def fail(warehouse, name, failures):
    put_failures(warehouse.store, warehouse.store.load(name), failures)


def failures(warehouse, name):
    return failures_of(warehouse.store, warehouse.store.load(name))


def test_there_are_none_at_first(warehouse):
    found = failing_logs(warehouse)
    assert (found.logs, found.unreadable, found.now_ms) == ((), (), 1000)


def test_logs_of_all_topics_are_listed_the_worst_first(warehouse):
    fail(warehouse, ORDERS, {0: ONCE, 3: OFTEN})
    fail(warehouse, OTHER, {1: STUCK})
    found = failing_logs(warehouse).logs
    assert [(log.topic, log.partition) for log in found] == [("other", 1), ("orders", 3), ("orders", 0)]
    assert found[0].to_json() == {
        "topic": "other",
        "partition": 1,
        "quarantined": True,
        "failures": 8,
        "since_ms": 2,
        "failed_ms": 50,
        "retry_ms": None,
        "error": "broken",
        "error_code": None,
    }
    assert (found[1].quarantined, found[1].retry_ms) == (False, 40)


def test_a_topic_that_cannot_be_read_hides_no_other(warehouse, monkeypatch):
    fail(warehouse, OTHER, {1: STUCK})
    load = warehouse.store.load

    def broken(name):
        if name == ORDERS:
            raise WarehouseError("orders: it is away")
        return load(name)

    monkeypatch.setattr(warehouse.store, "load", broken)
    found = failing_logs(warehouse)
    assert found.unreadable == (UnreadableTopic("orders", "orders: it is away", "Warehouse"),)
    assert [log.topic for log in found.logs] == ["other"]


def test_released_logs_are_as_if_they_had_never_failed_and_the_others_stay(warehouse):
    fail(warehouse, ORDERS, {0: ONCE, 1: STUCK, 3: STUCK})
    fail(warehouse, OTHER, {1: STUCK})
    report = release(warehouse, ORDERS, [3, 0, 3])
    assert report.topic == "orders"
    assert [(log.partition, log.failures, log.quarantined) for log in report.released] == [(0, 1, False), (3, 8, True)]
    assert failures(warehouse, ORDERS) == {1: STUCK}
    assert failures(warehouse, OTHER) == {1: STUCK}


def test_without_partitions_all_that_fail_are_released(warehouse):
    fail(warehouse, ORDERS, {0: ONCE, 1: STUCK})
    assert [log.partition for log in release(warehouse, ORDERS).released] == [0, 1]
    assert failures(warehouse, ORDERS) == {}


def test_a_log_that_does_not_fail_is_refused_and_those_that_do_are_named(warehouse):
    fail(warehouse, ORDERS, {1: STUCK, 3: ONCE})
    with pytest.raises(RefusedError, match=r"orders-2 is not quarantined or failing; nothing was released") as refused:
        release(warehouse, ORDERS, [1, 2])
    assert refused.value.hint == "the failing logs of orders are 1, 3"
    assert failures(warehouse, ORDERS) == {1: STUCK, 3: ONCE}


@pytest.mark.parametrize("partitions", [None, [0]])
def test_a_topic_of_which_no_log_fails_is_refused(warehouse, partitions):
    with pytest.raises(RefusedError, match="orders: it has no quarantined or failing logs"):
        release(warehouse, ORDERS, partitions)


def test_a_partition_that_is_not_there_is_refused(warehouse):
    with pytest.raises(UnknownTopicError, match="orders has no partition 4"):
        release(warehouse, ORDERS, [4])
