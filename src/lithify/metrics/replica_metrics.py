"""The metrics of a replica daemon: its events change counters, and its figures are samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lithify.metrics.figures import ReplicaFigures
from lithify.metrics.meter import Change, Meter, Sample, seconds_since
from lithify.metrics.table import PREFIX, Group
from lithify.reports.replicas.replica_events import ReplicaEvent, ReplicaEventKind

REPLICA = f"{PREFIX}replica_"


class ReplicaMetrics:
    """Counts the events of one daemon, and shows its figures once they are watched. Several threads may use it."""

    def __init__(self, meter: Meter) -> None:
        meter.begin(Group.REPLICA)
        self._meter, self._started_ms = meter, meter.now_ms()
        self._figures: Callable[[], ReplicaFigures] | None = None
        meter.watch(self._samples)

    def event(self, event: ReplicaEvent) -> None:
        """Counts an event."""
        self._meter.count(changes(event))

    def watch(self, figures: Callable[[], ReplicaFigures]) -> None:
        """Asks for the figures at each scrape."""
        self._figures = figures

    def end(self) -> None:
        """The daemon has ended: only what it counted remains."""
        self._meter.forget(self._samples)

    def _samples(self) -> Iterator[Sample]:
        figures, now_ms = None if self._figures is None else self._figures(), self._meter.now_ms()
        looked_ms = None if figures is None else figures.looked_ms
        since_look_s = seconds_since(self._started_ms if looked_ms is None else looked_ms, now_ms)
        yield Sample(f"{REPLICA}last_look_age_seconds", since_look_s)
        if figures is not None and looked_ms is not None:
            yield from samples(figures, now_ms)


def changes(event: ReplicaEvent) -> Iterator[Change]:
    """What an event changes."""
    facts, topic = event.facts, event.topic or ""
    if (code := facts.get("error_code")) is not None:
        yield Change(f"{PREFIX}errors_total", labels={"error_code": code})
    match event.kind:
        case ReplicaEventKind.COPIED:
            yield Change(f"{REPLICA}copies_total", topic=topic)
            yield Change(f"{REPLICA}copied_files_total", facts["files_copied"])
            yield Change(f"{REPLICA}copied_bytes_total", facts["bytes_copied"])
        case ReplicaEventKind.FAILED:
            yield Change(f"{REPLICA}failures_total", topic=topic)


def samples(figures: ReplicaFigures, now_ms: int) -> Iterator[Sample]:
    """The gauges of a daemon that has completed a check."""
    lags_s = {topic: seconds_since(since_ms, now_ms) for topic, since_ms in figures.behind_since_ms.items()}
    yield Sample(f"{REPLICA}topics", figures.topics)
    yield Sample(f"{REPLICA}failed_topics", figures.failed)
    yield Sample(f"{REPLICA}behind_topics", len(lags_s))
    yield Sample(f"{REPLICA}max_lag_seconds", max(lags_s.values(), default=0.0))
    for topic, lag_s in lags_s.items():
        yield Sample(f"{PREFIX}topic_replica_lag_seconds", lag_s, topic)
