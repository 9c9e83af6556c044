"""When positions of groups are read, how often, and what is done without them (C61, C62)."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import pytest

from lithify.errors import CoordinationError
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.service.change.alter import alter
from lithify.service.change.retain import retain
from lithify.service.group_reads import PositionsOfLook, read_groups
from lithify.service.look.catalog_watch import CatalogWatch, Finding
from lithify.service.look.lag import group_lag
from lithify.service.look.status import topic_status
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_store import MemoryWarehouse
from lithify.testing.oracle_engine import OracleEngine
from support.builders import some_settings
from support.topics.known_positions import KnownPositions
from support.topics.memory_topic import ORDERS, MemoryTopic

HOLDS = {"tombstone_hold_groups": "g", "tombstone_hold_max_ms": -1, "delete_retention_ms": 0}
PLAIN, ONE, TWO = (TopicName("default", name) for name in ("plain", "one", "two"))


class Asked(KnownPositions):
    """Positions that count how often they are asked for, and may be unreadable."""

    def __init__(self):
        super().__init__()
        self.calls: list[frozenset[str]] = []
        self.error: Exception | None = None

    def positions_of(self, groups, topic=None):
        self.calls.append(frozenset(groups))
        if self.error is not None:
            raise self.error
        return super().positions_of(groups, topic)


class Noting:
    def __init__(self):
        self.told = []

    def finding(self, topic, now_ms):
        self.told.append(topic)
        return Finding(None, None)

    def failed(self, name, error, now_ms):
        raise error


@pytest.fixture
def groups():
    return Asked()


@pytest.fixture
def warehouse(groups):
    clock = FakeClock(1_000)
    memory = MemoryWarehouse(clock.new_id, clock.now_ms)
    warehouse = Warehouse(memory.store, memory.files, clock, groups)
    other = {**HOLDS, "tombstone_hold_groups": "h"}
    for name, config in ((PLAIN, {}), (ONE, HOLDS), (TWO, other)):
        memory.store.create_topic(NewTopic(name, name.topic, some_settings(**config), 1, 0))
        append(warehouse, name, [Record(b"a", b"1", 1_000, partition=0), Record(b"a", None, 1_000, partition=0)])
    return warehouse


def rounded(warehouse, name):
    return compact(warehouse, OracleEngine(warehouse.files), name, RunRequest())


def commit(warehouse, groups, name, group, offset):
    groups.commit(warehouse.store.load(name), 0, group, offset, 1_000)


def test_no_database_is_asked_for_topics_that_name_no_group(warehouse, groups):
    """C61: nor for a look at a catalog without such topics."""
    rounded(warehouse, PLAIN)
    topic_status(warehouse, warehouse.store.load(PLAIN))
    for name in (ONE, TWO):
        warehouse.store.drop_topic(name)
    watch = CatalogWatch(warehouse.store, Noting(), groups=groups)
    watch.look(1_000)
    watch.look(2_000)
    assert groups.calls == []


def test_a_look_asks_once_for_all_groups_that_are_known_to_be_named(warehouse, groups):
    """C61."""
    watch = CatalogWatch(warehouse.store, Noting(), groups=groups)
    watch.look(1_000)
    assert sorted(map(sorted, groups.calls)) == [["g"], ["h"]], "each group once, whatever the number of topics"
    groups.calls.clear()
    watch.look(2_000)
    assert groups.calls == [{"g", "h"}]


def test_the_progress_of_a_group_is_looked_at_as_a_commit_is(warehouse, groups):
    """C61: of the topic that names it, and of no other."""
    for name in (PLAIN, ONE, TWO):
        rounded(warehouse, name)
    watcher = Noting()
    watch = CatalogWatch(warehouse.store, watcher, groups=groups)
    watch.look(1_000)
    assert not any(topic.assessments[0].verdict.due for topic in watcher.told)
    watcher.told.clear()
    watch.look(2_000)
    assert watcher.told == []
    commit(warehouse, groups, ONE, "g", 2)
    commit(warehouse, groups, PLAIN, "g", 2)
    watch.look(3_000)
    assert [(topic.state.name, topic.assessments[0].verdict.due) for topic in watcher.told] == [(ONE, True)]
    assert rounded(warehouse, ONE).logs[0].losers.expired_tombstone == 1


def test_progress_in_a_log_without_tombstones_is_not_looked_at(warehouse, groups):
    """C61: consumers of a topic may commit all the time."""
    rounded(warehouse, ONE)
    commit(warehouse, groups, ONE, "g", 2)
    rounded(warehouse, ONE)
    watcher = Noting()
    watch = CatalogWatch(warehouse.store, watcher, groups=groups)
    watch.look(1_000)
    watcher.told.clear()
    commit(warehouse, groups, ONE, "g", 1)
    watch.look(2_000)
    assert watcher.told == []


def test_a_watcher_that_keeps_topics_in_memory_sees_the_progress_too(warehouse, groups, monkeypatch):
    """C61: as `status` does, without a read."""
    rounded(warehouse, ONE)
    watcher = Noting()
    monkeypatch.setattr(
        watcher, "finding", lambda topic, _: watcher.told.append(topic) or Finding(None, None, topic=topic)
    )
    watch = CatalogWatch(warehouse.store, watcher, groups=groups)
    watch.look(1_000)
    watcher.told.clear()
    commit(warehouse, groups, ONE, "g", 2)
    monkeypatch.delattr(type(warehouse.store), "load_at")
    watch.look(2_000)
    assert [topic.assessments[0].verdict.due for topic in watcher.told] == [True]


def test_what_cannot_be_read_holds_everything_and_is_said(warehouse, groups):
    """C61: a look goes on, and so do rounds."""
    rounded(warehouse, ONE)
    commit(warehouse, groups, ONE, "g", 2)
    groups.error = CoordinationError("the database is away")
    groups.calls.clear()
    watch = CatalogWatch(warehouse.store, Noting(), groups=groups)
    watch.look(1_000)
    assert (watch.groups_error, len(groups.calls)) == (groups.error, 1), "after an error nothing more is asked"
    report = rounded(warehouse, ONE)
    assert report.groups_error == "the database is away" and report.logs[0].held_by == ("g",) and not report.changed
    status = topic_status(warehouse, warehouse.store.load(ONE))
    assert status.groups_error == "the database is away" and status.logs[0].holds[0].position is None
    groups.error = None
    watch.look(2_000)
    assert watch.groups_error is None and watch.known[ONE].positions
    assert rounded(warehouse, ONE).changed


def test_a_defect_of_the_database_is_no_defect_of_the_round(warehouse, groups):
    """C50, C61."""
    groups.error = ZeroDivisionError("division by zero")
    reads = read_groups(warehouse, warehouse.store.load(ONE))
    assert reads.error is not None and "division by zero" in reads.error and reads.of(0).tombstones_below == 0
    look = PositionsOfLook(groups, warehouse.store)
    assert look.reads(warehouse.store.load(ONE)).error == reads.error


@pytest.mark.parametrize("partitions", [1, 2])
def test_what_a_group_has_read_of_a_state_that_was_lost_is_not_trimmed_before_as_many_versions(partitions: int) -> None:
    """C49, C62: its position is of a later version than the restored topic has, as one committed a moment ago is."""
    topic = MemoryTopic(compaction_mode="side-by-side", backlog_trim_groups="g")
    topic.append([Record(b"a", b"1", 1_000)])
    backup = copy(topic.store._topics[ORDERS])
    backup.versions = list(backup.versions)
    for _ in range(9):
        topic.append([Record(b"a", b"2", 1_000)])
    alter(topic.warehouse, ORDERS, {}, partitions=partitions)
    loaded = topic.state
    topic.append([Record(b"a", b"3", 1_000)])
    topic.group_reads("g", 10, partition=partitions - 1)
    reads = read_groups(topic.warehouse, loaded)
    assert [reads.of(p).backlog_below for p in loaded.partitions][-1] == loaded.log(partitions - 1).log_end_offset
    assert PositionsOfLook(topic.groups, topic.store).reads(loaded) == reads

    topic.store._topics[ORDERS] = backup
    for _ in range(5):
        topic.append([Record(b"a", b"unread", 1_000)])
    assert topic.state.version < loaded.version
    assert PositionsOfLook(topic.groups, topic.store).reads(topic.state).of(0).backlog_below == 0
    report = topic.compact()
    assert (report.logs[0].first_dirty_offset_after, report.logs[0].log_start_offset_after) == (6, 0)


def test_the_lag_of_a_group_says_that_it_holds_what_it_has_read_of_a_lost_state_alone() -> None:
    """C59, C61: as rounds and `status` do."""
    topic = MemoryTopic(**HOLDS)
    topic.append([Record(b"a", None, 1_000)])
    topic.compact()
    backup = copy(topic.store._topics[ORDERS])
    backup.versions = list(backup.versions)
    topic.append([Record(b"b", b"1", 1_000)])
    topic.group_reads("g", 2)

    def holds() -> tuple[bool | None, int]:
        (lag,) = group_lag(topic.warehouse, "g", ORDERS, topic.groups.positions_of(["g"], ORDERS))
        (log,) = topic_status(topic.warehouse, topic.state).logs
        return lag.holds_tombstones, log.holds[0].tombstones

    assert holds() == (False, 0)
    topic.store._topics[ORDERS] = backup
    assert holds() == (True, 1)


def test_retain_says_why_it_trims_nothing(warehouse, groups):
    """C62."""
    name = TopicName("default", "beside")
    config = some_settings(compaction_mode="side-by-side", backlog_trim_groups="g")
    warehouse.store.create_topic(NewTopic(name, "beside", config, 1, 0))
    append(warehouse, name, [Record(b"a", b"1", 1_000, partition=0)])
    rounded(warehouse, name)
    commit(warehouse, groups, name, "g", 1)
    groups.error = CoordinationError("the database is away")
    report = retain(warehouse, name)
    assert (report.changed, report.groups_error) == (False, "the database is away")
    groups.error = None
    report = retain(replace(warehouse), name)
    assert (report.changed, report.groups_error, warehouse.store.load(name).log(0).log_start_offset) == (True, None, 1)
