"""Two watches of one process read each version of a topic once (C50)."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from lithify.errors import DamagedError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.service.look.assessed_topic import AssessedTopic, SharedTopics
from lithify.service.look.catalog_watch import CatalogWatch, Finding
from lithify.service.write.append import append
from support.topics.memory_topic import ORDERS, a_warehouse


class Keeping:
    """A watcher that keeps each topic, as the overview does, or none, as the cleaner does."""

    def __init__(self, *, keeps: bool):
        self.keeps, self.told = keeps, []

    def finding(self, topic: AssessedTopic, now_ms):
        self.told.append(topic)
        return Finding(None, now_ms if self.keeps else None, topic=topic if self.keeps else None)

    def failed(self, name, error, now_ms):
        self.told.append(str(error))
        return Finding(None, now_ms)


@pytest.fixture
def warehouse():
    return a_warehouse(ORDERS, now_ms=1_000)


@pytest.fixture
def reads(warehouse, monkeypatch):
    """What was read of the store, by the name of the call."""
    counted = Counter()
    for name in ("load_at", "segments"):
        real = getattr(warehouse.store, name)

        def call(*arguments, real=real, name=name):
            counted[name] += 1
            return real(*arguments)

        monkeypatch.setattr(warehouse.store, name, call)
    return counted


def watches(warehouse):
    shared = SharedTopics()
    both = [CatalogWatch(warehouse.store, Keeping(keeps=keeps), shared=shared) for keeps in (False, True)]
    return (*both, shared)


@pytest.mark.parametrize("cleaner_first", [True, False])
def test_what_one_has_read_the_other_need_not(warehouse, reads, cleaner_first):
    append(warehouse, ORDERS, [Record(b"a", b"1", 1_000)])
    cleaner, overview, _ = watches(warehouse)
    for turn in (1, 2):
        reads.clear()
        for watch in (cleaner, overview) if cleaner_first else (overview, cleaner):
            watch.look(1_000 * turn)
        assert reads == {"load_at": 1, "segments": 1}
        assert cleaner.watcher.told[-1] == overview.watcher.told[-1]
        append(warehouse, ORDERS, [Record(b"b", b"2", 1_000)])


def test_what_is_due_by_another_time_is_assessed_for_that_time():
    warehouse = a_warehouse(ORDERS, now_ms=1_000, min_compaction_lag_ms=60_000)
    append(warehouse, ORDERS, [Record(b"a", b"1", 1_000)])
    cleaner, overview, _ = watches(warehouse)
    cleaner.look(1_000)
    overview.look(9_000_000_000)
    alone = CatalogWatch(warehouse.store, Keeping(keeps=False))
    alone.look(9_000_000_000)
    assert overview.watcher.told == alone.watcher.told != cleaner.watcher.told


def test_who_looks_meanwhile_waits_for_what_the_other_reads(warehouse, monkeypatch):
    append(warehouse, ORDERS, [Record(b"a", b"1", 1_000)])
    cleaner, overview, _ = watches(warehouse)
    begun, may_end, loads = Event(), Event(), []
    real = warehouse.store.load_at

    def slow(*arguments):
        loads.append(arguments)
        begun.set()
        assert may_end.wait(30)
        return real(*arguments)

    monkeypatch.setattr(warehouse.store, "load_at", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cleaner.look, 1_000)
        assert begun.wait(30)
        second = pool.submit(overview.look, 1_000)
        assert not second.done()
        may_end.set()
        first.result()
        second.result()
    assert len(loads) == 1
    assert overview.watcher.told == cleaner.watcher.told != []


def test_a_damaged_log_is_read_by_each(warehouse, monkeypatch):
    """C31: once it is repaired, it is found so at the next look."""
    append(warehouse, ORDERS, [Record(b"a", b"1", 1_000)])
    cleaner, overview, _ = watches(warehouse)

    def damaged(*_arguments):
        raise DamagedError("a manifest is missing")

    with monkeypatch.context() as patch:
        patch.setattr(warehouse.store, "segments", damaged)
        cleaner.look(1_000)
    overview.look(1_000)
    assert [bool(topic.damaged) for topic in (*cleaner.watcher.told, *overview.watcher.told)] == [True, False]


@pytest.mark.parametrize("page_first", [True, False])
def test_a_log_that_is_damaged_later_is_found_by_who_looks_again(warehouse, monkeypatch, page_first):
    """C31: else a round would fail for all logs of the topic, again and again."""
    append(warehouse, ORDERS, [Record(b"a", b"1", 1_000)])
    cleaner, overview, _ = watches(warehouse)
    for watch in (overview, cleaner) if page_first else (cleaner,):
        watch.look(1_000)

    def damaged(*_arguments):
        raise DamagedError("a manifest is missing")

    monkeypatch.setattr(warehouse.store, "segments", damaged)
    cleaner.replace_finding(ORDERS, Finding(None, 0), 1_000)
    cleaner.look(2_000)
    assert cleaner.watcher.told[-1].damaged.keys() == {0}
    overview.look(3_000)
    assert page_first or overview.watcher.told[-1].damaged.keys() == {0}


def test_a_read_that_hangs_keeps_no_other_topic_waiting(warehouse, monkeypatch):
    shared, begun, may_end = SharedTopics(), Event(), Event()
    hanging, others = TopicName("default", "hanging"), [TopicName("default", f"t{n}") for n in range(300)]

    def load_at(name, token):
        if name == hanging:
            begun.set()
            assert may_end.wait(30)
        return warehouse.store.load(ORDERS)

    monkeypatch.setattr(warehouse.store, "load_at", load_at)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shared.read, hanging, "1", lambda _: shared.state(warehouse.store, hanging, "1") and None)
        assert begun.wait(30)
        rest = pool.submit(
            lambda: [
                shared.read(name, "1", lambda _: None) or shared.state(warehouse.store, name, "1") for name in others
            ]
        )
        try:
            assert len(rest.result(10)) == len(others)
        finally:
            may_end.set()
        first.result()


def test_a_version_without_a_token_is_read_by_each(warehouse, reads, monkeypatch):
    cleaner, overview, _ = watches(warehouse)
    monkeypatch.setattr(warehouse.store, "change_tokens", lambda: iter([(ORDERS, None)]))
    cleaner.look(1_000)
    overview.look(1_000)
    assert reads["load_at"] == 2


def test_deleted_topics_are_forgotten():
    other = TopicName("default", "other")
    warehouse = a_warehouse(ORDERS, other)
    cleaner, overview, shared = watches(warehouse)
    cleaner.look(1_000)
    assert shared._topics.keys() == {ORDERS, other}
    warehouse.store.drop_topic(other)
    overview.look(1_000)
    assert shared._topics.keys() == {ORDERS}
