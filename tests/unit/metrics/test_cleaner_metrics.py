"""What the work of a cleaner changes in its metrics (C28, C29, C31)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.daemons.cleaner.cleaner_options import CleanerOptions
from lithify.daemons.cleaner.loop import make_loop
from lithify.errors import DamagedError, WarehouseError
from lithify.metrics.cleaner_metrics import CleanerMetrics, changes, samples
from lithify.metrics.figures import CleanerFigures, TopicFigures
from lithify.metrics.meter import NoMeter
from lithify.metrics.registry import Registry
from lithify.metrics.table import BY_NAME
from lithify.model.names import LogId
from lithify.reports.events import CleanerEvent, EventKind
from lithify.reports.overview import Standing
from lithify.service.change.alter import alter
from lithify.service.look.overview import StatusWatch
from support.scrapes import values_of
from support.topics.cleaner_lake import INTERVAL_MS, CleanerLake

P = "lithify_"
DAY_MS = 86_400_000


class Measured:
    """A cleaner on a lake in memory, with its metrics: the test takes its steps."""

    def __init__(self, lake: CleanerLake, *, topics: int = 0, warehouse=None) -> None:
        self.lake = lake
        self.registry = Registry("0", lake.clock.now_ms, topics)
        self.metrics = CleanerMetrics(self.registry, INTERVAL_MS)
        options = CleanerOptions("alpha", "memory", interval_ms=INTERVAL_MS)
        events = self.metrics.event
        self.loop = make_loop(warehouse or lake.warehouse, lake.engine, lake.coordination, options, events)
        self.metrics.watch(self.loop.figures)

    def work(self) -> None:
        for _ in range(200):
            if type(self.loop.cleaner.step()).__name__ == "Waits":
                return
        raise AssertionError("still busy")

    def looks(self, after_ms: int = INTERVAL_MS) -> None:
        self.lake.wait(after_ms)
        self.loop.cleaner.step(works=False)

    def shown(self) -> dict[str, float]:
        return values_of(self.registry.render()[0].decode())

    def __getitem__(self, name: str) -> float:
        return self.shown()[P + name]


@pytest.fixture
def lake() -> CleanerLake:
    return CleanerLake(now_ms=100 * DAY_MS)


def test_rounds_are_counted_with_what_they_removed_and_why(lake):
    measured = Measured(lake)
    topic = lake.topic("orders", delete_retention_ms=0)
    lake.append(topic, "a=1 b=1 a=2 b=-")
    measured.work()
    lake.append(topic, "c=1 c=2 c=3")
    measured.looks()
    measured.work()
    by_cause = {n.partition("cause=")[2][:-1]: v for n, v in measured.shown().items() if "removed_records" in n}
    removed = {cause: value for cause, value in by_cause.items() if cause and value}
    assert removed == {"superseded": 4, "expired_tombstone": 1}
    assert (measured["compaction_rounds_total"], measured["compaction_logs_total"]) == (2, 2)
    records_in, records_out = (measured[f"compaction_{what}_records_total"] for what in ("input", "output"))
    assert records_in - records_out == 5
    assert measured["compaction_duration_seconds_count"] == 2
    assert measured["compaction_read_bytes_total"] > 0 < measured["compaction_written_bytes_total"]


def test_gauges_are_as_the_last_check_has_found_the_topics_and_as_status_tells(lake):
    topics = [lake.topic(name) for name in ("one", "two", "three")]
    overdue = lake.topic("overdue", max_compaction_lag_ms=DAY_MS)
    deletes = lake.topic("deletes", cleanup_policy="delete")
    for name in (*topics, deletes):
        lake.append(name, "a=1 b=1 a=2")
    lake.append(overdue, "a=1", age_ms=3 * DAY_MS)
    measured = Measured(lake)
    measured.looks()
    overview = StatusWatch(lake.warehouse).overview()
    found = overview.counts()
    assert measured["topics"] == len(overview.topics) == 5
    assert measured["due_topics"] == found[Standing.DUE] + found[Standing.OVERDUE] == 4
    assert measured["overdue_topics"] == 1
    assert measured["max_overdue_seconds"] == overview.topics[0].overdue_ms / 1000
    assert measured["max_compaction_lag_seconds"] == 3 * DAY_MS / 1000 + INTERVAL_MS / 1000
    assert measured["max_dirty_ratio"] == 1 and measured["log_cleaner_max_dirty_percent"] == 100
    assert measured["log_cleaner_max_compaction_delay_secs"] == measured["max_overdue_seconds"]


AGES_MS = (0, DAY_MS, 5 * DAY_MS)
TOPICS = st.lists(
    st.tuples(
        st.sampled_from((0.2, 0.5, 1)), st.sampled_from((2 * DAY_MS, None)), st.sampled_from(AGES_MS), st.booleans()
    ),
    max_size=4,
)


@given(TOPICS)
@settings(max_examples=40, deadline=None)
def test_each_topic_is_told_as_status_tells_it(drawn):
    lake = CleanerLake(now_ms=100 * DAY_MS)
    measured = Measured(lake, topics=10)
    made = []
    for number, (ratio, longest_ms, age_ms, _) in enumerate(drawn):
        limits = {} if longest_ms is None else {"max_compaction_lag_ms": longest_ms}
        made.append(lake.topic(f"t{number}", min_cleanable_dirty_ratio=ratio, **limits))
        lake.append(made[-1], "a=1 b=1 c=1 a=2", age_ms=age_ms)
    measured.work()
    for name, (_, _, age_ms, grows) in zip(made, drawn, strict=True):
        if grows:
            lake.append(name, "a=3", age_ms=age_ms)
    measured.looks()
    shown = measured.shown()
    for topic in StatusWatch(lake.warehouse).overview().topics:

        def of(what, name=topic.topic):
            return shown[f"{P}topic_{what}{{topic={name}}}"]

        assert of("dirty_ratio") == topic.dirty_ratio
        assert of("overdue_seconds") == topic.overdue_ms / 1000
        assert of("due_logs") == (topic.state in (Standing.DUE, Standing.OVERDUE))


def test_after_the_rounds_nothing_is_dirty_but_what_only_deletes_has(lake):
    for name in ("one", "two"):
        lake.append(lake.topic(name), "a=1 a=2")
    lake.append(lake.topic("deletes", cleanup_policy="delete"), "a=1 a=2")
    measured = Measured(lake)
    measured.work()
    measured.looks()
    shown = measured.shown()
    assert [shown[P + name] for name in ("due_topics", "due_logs", "max_dirty_ratio", "dirty_bytes")] == [0] * 4
    assert shown[f"{P}max_compaction_lag_seconds"] == 0 and shown[f"{P}topics"] == 3


def test_a_topic_that_is_overdue_gets_more_so_between_checks(lake):
    lake.append(lake.topic("late", max_compaction_lag_ms=DAY_MS), "a=1", age_ms=2 * DAY_MS)
    measured = Measured(lake)
    measured.looks()
    before = measured["max_overdue_seconds"]
    lake.wait(60_000)
    assert measured["max_overdue_seconds"] == before + 60
    assert measured["last_look_age_seconds"] == 60
    assert measured["log_cleaner_time_since_last_run_ms"] == 60_000


def test_failing_logs_are_counted_and_quarantined_ones_are_uncleanable(lake):
    topic = lake.topic("orders")
    lake.append(topic, "a=1 a=2")
    lake.engine.fails[LogId(topic, 0)] = DamagedError("a segment is damaged")
    measured = Measured(lake)
    for failures in range(1, 9):
        measured.work()
        assert measured["compaction_failed_logs_total"] == failures
        assert measured["errors_total{error_code=Damaged}"] == failures
        measured.looks(3_600_000)
    assert (measured["quarantined_logs"], measured["log_cleaner_uncleanable_partitions_count"]) == (1, 1)
    assert measured["log_cleaner_uncleanable_bytes"] == measured["dirty_bytes"] > 0
    assert measured["due_topics"] == 1  # it waits for a person


def test_topics_that_cannot_be_read_are_counted_until_they_can(lake):
    lake.topic("orders")
    store = Troubled(lake.warehouse.store)
    measured = Measured(lake, warehouse=replace(lake.warehouse, store=store))
    store.fails = WarehouseError("it is away")
    measured.looks()
    assert measured["unreadable_topics"] == 1 and measured["errors_total{error_code=Warehouse}"] == 1
    store.fails = None
    measured.looks(3_600_000)
    assert measured["unreadable_topics"] == 0


class Troubled:
    """A store that counts requests, and whose topics cannot be loaded while it `fails`."""

    def __init__(self, real) -> None:
        self._real, self.fails, self.requests = real, None, 0

    def __getattr__(self, name):
        self.requests += 1
        if self.fails is not None and name in ("load", "load_at"):
            raise self.fails
        return getattr(self._real, name)


def test_a_scrape_asks_neither_store_nor_database(lake, monkeypatch):
    for number in range(20):
        lake.append(lake.topic(f"t{number}"), "a=1 a=2")
    store = Troubled(lake.warehouse.store)
    measured = Measured(lake, warehouse=replace(lake.warehouse, store=store), topics=5)
    measured.looks()
    requests = store.requests
    assert requests > 20

    def refuse(*_given):
        raise AssertionError("the database was asked")

    for name in ("leases", "renew", "take", "notes"):
        monkeypatch.setattr(lake.coordination, name, refuse)
    for _ in range(10):
        assert measured["topics"] == 20
    assert store.requests == requests


def test_before_the_first_check_only_its_age_is_told(lake):
    lake.topic("orders")
    measured = Measured(lake)
    lake.wait(5_000)
    shown = measured.shown()
    assert shown[f"{P}last_look_age_seconds"] == shown[f"{P}last_round_age_seconds"] == 5
    assert f"{P}topics" not in shown and f"{P}max_dirty_ratio" not in shown


def test_a_cleaner_that_waits_for_the_catalog_to_start_has_not_looked_either():
    now_ms = [0]
    registry = Registry("0", lambda: now_ms[0])
    CleanerMetrics(registry, INTERVAL_MS)
    now_ms[0] = 90_000
    shown = values_of(registry.render()[0].decode())
    assert (shown[f"{P}last_look_age_seconds"], shown[f"{P}look_interval_seconds"]) == (90, INTERVAL_MS / 1000)


def test_a_deleted_topic_is_gone_with_the_next_check(lake):
    topic = lake.topic("orders")
    measured = Measured(lake, topics=3)
    measured.looks()
    assert measured["topic_dirty_ratio{topic=orders}"] == 0
    lake.warehouse.store.drop_topic(topic)
    measured.looks()
    assert measured["topics"] == 0 and f"{P}topic_dirty_ratio{{topic=orders}}" not in measured.shown()


def test_topics_are_told_apart_as_far_as_was_asked_for(lake):
    for name in ("a", "b", "c"):
        lake.append(lake.topic(name), "a=1 a=2")
    measured = Measured(lake, topics=2)
    measured.work()
    shown = measured.shown()
    rounds = [n for n in shown if n.startswith(f"{P}compaction_rounds_total")]
    assert len(rounds) == 3 and f"{P}compaction_rounds_total{{topic=(others)}}" in rounds
    assert sum(shown[name] for name in rounds) == 3
    assert shown[f"{P}unlabelled_topics"] == 1


def test_the_last_round_is_in_the_metrics_of_kafka(lake):
    measured = Measured(lake)
    assert f"{P}log_cleaner_max_clean_time_secs" not in measured.shown()
    lake.append(lake.topic("orders"), "a=1 b=1 a=2")
    measured.work()
    written, read = measured["compaction_written_bytes_total"], measured["compaction_read_bytes_total"]
    assert measured["log_cleaner_cleaner_recopy_percent"] == pytest.approx(100 * written / read)
    lake.wait(7_000)
    assert measured["last_round_age_seconds"] == 7


def test_retention_expiry_and_sweeps_are_counted(lake):
    topic = lake.topic("orders", cleanup_policy="delete", retention_ms=DAY_MS, versions_retention_ms=0)
    lake.append(topic, "a=1 b=1", age_ms=2 * DAY_MS)
    lake.append(topic, "c=1")
    measured = Measured(lake)
    measured.work()
    assert measured["retention_removed_records_total"] == 2 and measured["retention_removed_bytes_total"] > 0
    lake.wait(DAY_MS)
    measured.work()
    assert measured["expired_versions_total"] > 0
    assert measured["swept_files_total"] > 0 < measured["swept_bytes_total"]


def test_a_topic_without_compaction_now_is_not_dirty(lake):
    topic = lake.topic("orders", min_cleanable_dirty_ratio=1)
    lake.append(topic, "a=1 a=2")
    measured = Measured(lake)
    measured.looks()
    assert measured["max_dirty_ratio"] == 1
    alter(lake.warehouse, topic, {"cleanup.policy": "delete"})
    measured.looks()
    assert measured["max_dirty_ratio"] == 0


ROUND = {
    "run_id": "r",
    "version": 2,
    "changed": True,
    "partitions": [0],
    "records_in": 1,
    "records_out": 1,
    "removed": 0,
    "removed_by_cause": {"superseded": 0},
    "bytes_read": 0,
    "bytes_written": 0,
    "overdue_ms": 0,
    "duration_ms": 1,
}
FACTS = {
    EventKind.ROUND: ROUND,
    EventKind.RETAINED: {"records": 1, "bytes": 1},
    EventKind.EXPIRED: {"versions": [1]},
    EventKind.SWEPT: {"files": 1, "bytes": 1},
}


@pytest.mark.parametrize("kind", EventKind)
def test_each_event_changes_metrics_that_there_are_with_their_labels(kind):
    event = CleanerEvent(kind, 0, "c", "orders", {"error_code": "Conflict", **FACTS.get(kind, {})})
    for change in changes(event):
        assert BY_NAME[change.name].labels == tuple(change.labels)
    CleanerMetrics(NoMeter(), INTERVAL_MS).event(event)  # as it is without --metrics-port


def test_a_clock_that_went_back_makes_no_age_below_zero():
    figures = CleanerFigures(2_000, {"t": TopicFigures(dirty_since_ms=9_000, overdue_since_ms=9_000)}, 0, 0, 1)
    assert min(sample.value for sample in samples(figures, 1_000)) >= 0
