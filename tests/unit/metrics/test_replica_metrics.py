"""What a replica daemon changes in its metrics."""

from __future__ import annotations

import pytest

from lithify.metrics.figures import ReplicaFigures
from lithify.metrics.meter import NoMeter
from lithify.metrics.registry import Registry
from lithify.metrics.replica_metrics import ReplicaMetrics
from lithify.reports.replicas.replica_events import ReplicaEvent, ReplicaEventKind
from support.scrapes import values_of

P = "lithify_"
COPIED = {"files_copied": 3, "bytes_copied": 100}


def event(kind: ReplicaEventKind, **facts: object) -> ReplicaEvent:
    return ReplicaEvent(kind, 0, "d", "r", "orders", facts)


def test_copies_failures_and_errors_are_counted():
    registry = Registry("0", lambda: 0)
    metrics = ReplicaMetrics(registry)
    for one in (
        event(ReplicaEventKind.COPIED, **COPIED),
        event(ReplicaEventKind.COPIED, **COPIED),
        event(ReplicaEventKind.FAILED, error="e", failures=1, retry_ms=1),
        event(ReplicaEventKind.TROUBLE, error="e", error_code="Warehouse"),
    ):
        metrics.event(one)
    shown = values_of(registry.render()[0].decode())
    assert shown[f"{P}replica_copies_total"] == 2
    assert (shown[f"{P}replica_copied_files_total"], shown[f"{P}replica_copied_bytes_total"]) == (6, 200)
    assert (shown[f"{P}replica_failures_total"], shown[f"{P}errors_total{{error_code=Warehouse}}"]) == (1, 1)


def test_its_topics_and_how_far_they_are_behind():
    now_ms = [1_000_000]
    registry = Registry("0", lambda: now_ms[0], topics=5)
    metrics = ReplicaMetrics(registry)
    figures = [ReplicaFigures(None, 0, 0, {})]
    metrics.watch(lambda: figures[0])
    now_ms[0] += 4_000
    shown = values_of(registry.render()[0].decode())
    assert shown[f"{P}replica_last_look_age_seconds"] == 4 and f"{P}replica_topics" not in shown
    figures[0] = ReplicaFigures(1_003_000, 7, 1, {"a": 1_000_000, "b": 1_002_000})
    shown = values_of(registry.render()[0].decode())
    names = ("last_look_age_seconds", "topics", "failed_topics", "behind_topics", "max_lag_seconds")
    assert [shown[f"{P}replica_{name}"] for name in names] == [1, 7, 1, 2, 4]
    assert shown[f"{P}topic_replica_lag_seconds{{topic=b}}"] == 2
    metrics.end()
    assert f"{P}replica_topics" not in values_of(registry.render()[0].decode())


@pytest.mark.parametrize("kind", ReplicaEventKind)
def test_each_event_is_taken_also_where_no_metrics_are_served(kind):
    ReplicaMetrics(NoMeter()).event(event(kind, **COPIED))
