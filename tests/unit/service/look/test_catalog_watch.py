"""What a watch over a catalog reads and names (C31, C50); `test_overview` has its budgets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lithify.errors import DamagedError, UnknownVersionError
from lithify.model.groups.reads import NO_READS
from lithify.model.record import Record
from lithify.service.look.assessed_topic import AssessedTopic, assess_topic
from lithify.service.look.catalog_watch import CatalogWatch, Finding
from lithify.service.write.append import append
from support.topics.memory_topic import ORDERS, a_warehouse


class Noting:
    """A watcher that records its calls, and looks again when `look_at_ms` says."""

    def __init__(self):
        self.told = []
        self.next_finding = Finding(None, None)

    def finding(self, topic: AssessedTopic, now_ms):
        self.told.append(topic)
        return self.next_finding

    def failed(self, name, error, now_ms):
        self.told.append((name, str(error)))
        return self.next_finding


@pytest.fixture
def warehouse():
    return a_warehouse(ORDERS, partitions=3, now_ms=1_000)


def write(warehouse, *partitions):
    append(warehouse, ORDERS, [Record(b"a", b"%d" % p, 1_000, partition=p) for p in partitions])


def test_only_manifests_of_logs_that_may_be_due_are_opened(warehouse):
    write(warehouse, 1)
    topic = assess_topic(warehouse.store, warehouse.store.load(ORDERS), NO_READS, 1_000)
    assert (set(topic.segments), set(topic.assessments), dict(topic.damaged)) == ({1}, {0, 1, 2}, {})
    assert [topic.assessments[p].verdict.due for p in range(3)] == [False, True, False]


def test_segments_that_are_known_are_not_read_again(warehouse, monkeypatch):
    write(warehouse, 1)
    topic = assess_topic(warehouse.store, warehouse.store.load(ORDERS), NO_READS, 1_000)
    monkeypatch.delattr(type(warehouse.store), "segments")
    assert assess_topic(warehouse.store, topic.state, NO_READS, 1_000, topic.segments) == topic


def test_a_log_whose_manifests_are_damaged_is_named_and_the_others_are_assessed(warehouse, monkeypatch):
    """C31."""
    write(warehouse, 0, 1)
    real, damage = warehouse.store.segments, DamagedError("a manifest is missing")

    def segments(state, partitions):
        if 0 in partitions:
            raise damage
        return real(state, partitions)

    monkeypatch.setattr(warehouse.store, "segments", segments)
    topic = assess_topic(warehouse.store, warehouse.store.load(ORDERS), NO_READS, 1_000)
    assert (topic.damaged, set(topic.assessments)) == ({0: damage}, {1, 2})


def test_a_commit_between_state_and_manifests_is_followed(warehouse, monkeypatch):
    write(warehouse, 0)
    real, stale, watcher = warehouse.store.segments, warehouse.store.load(ORDERS), Noting()

    def segments(state, partitions):
        if state.version == stale.version:
            raise UnknownVersionError("not retained")
        return real(state, partitions)

    monkeypatch.setattr(warehouse.store, "segments", segments)
    monkeypatch.setattr(warehouse.store, "load_at", lambda _name, _token: stale)
    write(warehouse, 1)
    CatalogWatch(warehouse.store, watcher).look(1_000)
    assert [topic.state.version for topic in watcher.told] == [stale.version + 1]


def test_what_the_watcher_raises_is_a_failure_of_that_topic(warehouse, monkeypatch):
    """C50."""
    watcher = Noting()
    monkeypatch.setattr(watcher, "finding", lambda _topic, _now_ms: 1 / 0)
    watch = CatalogWatch(warehouse.store, watcher)
    watch.look(1_000)
    ((name, error),) = watcher.told
    assert name == ORDERS and "division by zero" in error
    assert (watch.known[ORDERS].version, watch.known[ORDERS].history) == (0, 0)


def test_another_state_of_the_same_version_number_is_assessed(warehouse, monkeypatch):
    """As after a restoration, and a commit; what is the same state under another token rests."""
    write(warehouse, 0)
    watcher = Noting()
    watch, state = CatalogWatch(warehouse.store, watcher), warehouse.store.load(ORDERS)
    monkeypatch.setattr(warehouse.store, "change_tokens", lambda: iter([(ORDERS, None)]))
    watch.look(1_000)
    watch.look(1_000)
    assert len(watcher.told) == 1
    other = replace(state, logs=(replace(state.log(0), run_ids=("other",)), *state.logs[1:]))
    monkeypatch.setattr(warehouse.store, "load_at", lambda _name, _token: other)
    watch.look(1_000)
    assert [topic.state for topic in watcher.told] == [state, other]


@pytest.mark.parametrize(("despite_commits", "looks"), [(False, 2), (True, 1)])
def test_a_commit_is_looked_at_unless_the_watcher_waits_despite_commits(warehouse, despite_commits, looks):
    watcher = Noting()
    watcher.next_finding = Finding(None, 2_000, despite_commits=despite_commits)
    watch = CatalogWatch(warehouse.store, watcher)
    watch.look(1_000)
    write(warehouse, 0)
    watch.look(1_500)
    assert (len(watcher.told), watch.steps) == (looks, looks)
    watch.look(2_000)
    assert len(watcher.told) == looks + 1
