"""The catalog at a glance, over a store that counts what is read of it (C21, C28, C31)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from lithify.errors import DamagedError, UnknownTopicError
from lithify.model.cleaner_note import CleanerNote
from lithify.model.failure import LogFailure
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.reports.overview import Standing
from lithify.service.documents import put_failures
from lithify.service.look import catalog_watch, overview
from lithify.service.look.overview import StatusWatch
from lithify.service.look.status import topic_status
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_store import MemoryWarehouse
from lithify.testing.oracle_engine import OracleEngine
from support.builders import some_settings

HOUR_MS = 3_600_000
RATES = Counter(document_path=1, get_document=1)
"""What the rates of cleaners cost a look, however many topics there are."""


class CountingStore:
    """A store, with a count of its calls by name; `trouble` has what the loads of some topics raise."""

    at_once = 1

    def __init__(self, store):
        self._store = store
        self.calls = Counter()
        self.trouble = {}

    def __getattr__(self, name):
        self.calls[name] += 1
        return getattr(self._store, name)

    def load_at(self, name, mark):
        return self.load(name)

    def load(self, name):
        self.calls["load"] += 1
        if name in self.trouble:
            raise self.trouble[name]
        return self._store.load(name)


class Catalog:
    """Topics in memory, on a clock that only the test moves."""

    def __init__(self):
        self.clock = FakeClock(100 * HOUR_MS)
        memory = MemoryWarehouse(self.clock.new_id, self.clock.now_ms)
        self.store = CountingStore(memory.store)
        self.warehouse = Warehouse(self.store, memory.files, self.clock)
        self.watch = StatusWatch(self.warehouse)
        self.engine = OracleEngine(memory.files)

    def topic(self, name, *, partitions=1, records=(), compacted=False, **config):
        topic = TopicName("default", name)
        state = self.store.create_topic(NewTopic(topic, name, some_settings(**config), partitions, 0))
        if records:
            append(self.warehouse, topic, records)
        if compacted:
            compact(self.warehouse, self.engine, topic, RunRequest())
        return state

    def look(self, **more):
        """By name, how topics stand, in order."""
        self.store.calls.clear()
        return {topic.topic: topic for topic in self.watch.overview(**more).topics}


@pytest.fixture
def catalog():
    return Catalog()


def some_records(count=3, *, age_ms=0, value=b"v", partition=0):
    return [Record(b"k%d" % n, value, 100 * HOUR_MS - age_ms, partition=partition) for n in range(count)]


def test_topics_that_rest_cost_one_read_of_metadata_each_and_no_manifest(catalog):
    """Empty, clean, dirty below the ratio, too young, waiting for tombstones, and with retention to come."""
    for number in range(20):
        catalog.topic(f"empty{number}")
        catalog.topic(f"clean{number}", records=some_records(), compacted=True)
        catalog.topic(f"some{number}", records=some_records(), min_cleanable_dirty_ratio=1)
        catalog.topic(f"young{number}", records=some_records(), min_compaction_lag_ms=HOUR_MS)
        catalog.topic(f"deletes{number}", records=some_records(value=None), compacted=True)
        catalog.topic(f"events{number}", records=some_records(), cleanup_policy="delete")
    found = catalog.look()
    assert {topic.rstrip("0123456789"): (f.state, f.why, f.due_at_ms) for topic, f in found.items()} == {
        "empty": (Standing.CLEAN, "nothing dirty", None),
        "clean": (Standing.CLEAN, "nothing dirty", None),
        "some": (Standing.WAITING, "dirty ratio 1.00 <= 1", None),
        "young": (Standing.WAITING, "dirty records are too young", 101 * HOUR_MS),
        "deletes": (Standing.WAITING, "nothing dirty", 124 * HOUR_MS),
        "events": (Standing.WAITING, "nothing is past retention", 100 * HOUR_MS + 7 * 24 * HOUR_MS + 1),
    }
    assert catalog.store.calls == RATES + Counter(change_tokens=1, load=120, get_document=120)


def test_manifests_are_opened_for_logs_that_may_be_due_and_only_for_them(catalog):
    catalog.topic("clean", records=some_records(), compacted=True)
    catalog.topic("due", partitions=3, records=some_records(partition=1))
    found = catalog.look()
    assert list(found) == ["due", "clean"]
    due = found["due"]
    assert (due.state, due.partition, due.logs, due.logs_in_state) == (Standing.DUE, 1, 3, 1)
    assert (due.why, due.dirty_ratio, due.records) == ("dirty ratio 1.00 > 0.5", 1.0, 3)
    assert catalog.store.calls["segments"] == 1


def test_it_says_what_status_says_of_every_topic(catalog):
    """C28: whether its logs are due, and why, whichever verb is asked."""
    catalog.topic("due", records=some_records())
    catalog.topic("old", records=some_records(age_ms=3 * HOUR_MS), max_compaction_lag_ms=HOUR_MS)
    catalog.topic("soon", records=some_records(), max_compaction_lag_ms=HOUR_MS, min_cleanable_dirty_ratio=1)
    catalog.topic("kept", records=some_records(), min_cleanable_dirty_ratio=1)
    catalog.topic("events", records=some_records(age_ms=3 * HOUR_MS), cleanup_policy="delete", retention_ms=HOUR_MS)
    found = catalog.look()
    assert list(found) == ["old", "due", "events", "soon", "kept"]
    for name, topic in found.items():
        state = catalog.store.load(TopicName("default", name))
        (log,) = topic_status(catalog.warehouse, state).logs
        assert topic.why == log.due_reason
        assert (topic.overdue_ms, topic.due_at_ms) == (log.overdue_ms, log.due_at_ms)
        assert (topic.state in (Standing.DUE, Standing.OVERDUE)) is log.due
        assert (topic.records, topic.bytes) == (log.records, log.bytes)


def test_an_overview_may_be_as_of_another_time(catalog):
    catalog.topic("deletes", records=some_records(value=None), compacted=True)
    assert catalog.look()["deletes"].state is Standing.WAITING
    assert catalog.look(now_ms=124 * HOUR_MS)["deletes"].state is Standing.DUE
    found = catalog.watch.overview(now_ms=5)
    assert (found.now_ms, found.now_given) == (5, True)
    found = catalog.watch.overview()
    assert (found.now_ms, found.now_given) == (100 * HOUR_MS, False)


def test_failures_count_whether_the_log_is_due_or_not(catalog):
    """C31."""
    failure = LogFailure(8, 1, 2, 3, "no room", quarantined=True)
    for name in ("a", "b", "c"):
        state = catalog.topic(name, partitions=2)
        if name != "a":
            put_failures(catalog.store, state, {1: replace(failure, quarantined=name == "c")})
    found = catalog.look()
    assert [(topic.topic, topic.state, topic.partition) for topic in found.values()] == [
        ("c", Standing.QUARANTINED, 1),
        ("b", Standing.FAILING, 1),
        ("a", Standing.CLEAN, 0),
    ]


def test_a_watch_that_was_kept_says_what_a_new_one_says_at_any_time(catalog):
    """What is not assessed again is what it was: before, at and after each time that changes it, and backwards."""
    lagging = {"min_cleanable_dirty_ratio": 1, "max_compaction_lag_ms": HOUR_MS}
    catalog.topic("young", records=some_records(), min_compaction_lag_ms=HOUR_MS)
    catalog.topic("soon", partitions=2, records=some_records(), **lagging)
    catalog.topic("deletes", records=some_records(value=None), compacted=True)
    catalog.topic("events", records=some_records(), cleanup_policy="delete", retention_ms=2 * HOUR_MS)
    catalog.topic("due", records=some_records())
    quiet = catalog.topic("quiet")
    hours = [100, 100, 101, 102, 103, 124, 125]
    times = [hour * HOUR_MS + ms for hour in hours for ms in (-1, 0, 1)]
    failure = LogFailure(8, 1, 2, 3, "no room", quarantined=True)
    for failures in ({}, {0: failure}, {0: replace(failure, failures=9)}, {}):
        put_failures(catalog.store, quiet, failures)
        for now_ms in (*times, *reversed(times)):
            kept = catalog.watch.overview(now_ms=now_ms)
            assert kept == StatusWatch(catalog.warehouse).overview(now_ms=now_ms)
    assert len({topic.state for topic in kept.topics}) > 2


def test_a_second_look_assesses_no_topic_that_rests_again(catalog, monkeypatch):
    for number in range(20):
        catalog.topic(f"some{number}", records=some_records(), min_cleanable_dirty_ratio=1)
    first = catalog.look()
    monkeypatch.setattr(catalog_watch, "assess_topic", None)
    monkeypatch.setattr(catalog_watch, "Known", None)
    monkeypatch.setattr(overview, "Finding", None)
    second = catalog.look()
    assert all(second[name] is row for name, row in first.items())


def test_a_topic_that_cannot_be_read_comes_first_and_the_others_are_there(catalog):
    """C8."""
    for name in ("a", "b", "c"):
        catalog.topic(name, records=some_records())
    catalog.store.trouble[TopicName("default", "b")] = DamagedError("b: its metadata is missing", hint="restore it")
    found = catalog.look()
    assert list(found) == ["b", "a", "c"]
    assert (found["b"].state, found["b"].error) == (Standing.UNREADABLE, "b: its metadata is missing (restore it)")
    assert (found["b"].logs, found["b"].records, found["b"].dirty_ratio) == (None, None, None)


def test_a_topic_that_was_deleted_meanwhile_is_not_there(catalog):
    catalog.topic("a")
    catalog.topic("b")
    catalog.store.trouble[TopicName("default", "b")] = UnknownTopicError("there is no topic b")
    assert list(catalog.look()) == ["a"]


def test_a_second_look_reads_only_what_has_changed(catalog):
    """Also of topics that are due, whose manifests were opened."""
    for number in range(5):
        catalog.topic(f"empty{number}")
        catalog.topic(f"due{number}", records=some_records())
        catalog.topic(f"tight{number}", records=some_records(), max_compaction_lag_ms=HOUR_MS)
    first = catalog.look()
    assert catalog.store.calls == RATES + Counter(change_tokens=1, load=15, get_document=15, segments=10)
    assert catalog.look() == first
    assert catalog.store.calls == RATES + Counter(change_tokens=1, get_document=15)

    append(catalog.warehouse, TopicName("default", "empty3"), some_records())
    catalog.clock.advance(2 * HOUR_MS)
    later = catalog.look()
    assert catalog.store.calls == RATES + Counter(change_tokens=1, load=1, get_document=15, segments=1)
    assert {name for name, topic in later.items() if topic != first[name]} == {f"tight{n}" for n in range(5)} | {
        "empty3"
    }
    assert later["tight0"].overdue_ms == HOUR_MS
    assert later["empty3"].state is Standing.DUE


def test_a_recreated_topic_is_read_again(catalog):
    catalog.topic("a", records=some_records())
    assert catalog.look()["a"].records == 3
    catalog.store.drop_topic(TopicName("default", "a"))
    assert catalog.look() == {}
    catalog.topic("a")
    assert catalog.look()["a"].records == 0


def test_where_the_catalog_gives_no_change_tokens_every_topic_is_read_each_time(catalog, monkeypatch):
    state = catalog.topic("a")
    monkeypatch.setattr(catalog.store._store, "change_tokens", lambda: iter([(state.name, None)]))
    for _ in range(2):
        catalog.look()
        assert catalog.store.calls["load"] == 1


def test_no_cleaner_has_looked_in_the_future(catalog):
    """One that completes its look while the status is read has done so before."""

    def notes():
        catalog.clock.advance(300)
        return (CleanerNote("alpha", "memory", 15_000, 0, catalog.clock.now_ms()),)

    found = StatusWatch(catalog.warehouse, notes).overview()
    assert [note.looked_ms for note in found.cleaners] == [found.now_ms]
