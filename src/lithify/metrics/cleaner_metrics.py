"""The metrics of a cleaner: its events change counters, and its figures are samples (C28, C29, C31)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lithify.metrics.figures import CleanerFigures, TopicFigures
from lithify.metrics.meter import Change, Meter, Sample, seconds_since
from lithify.metrics.table import PREFIX, Group
from lithify.reports.events import CleanerEvent, EventKind

ROUND = f"{PREFIX}compaction_"
KAFKAS = f"{PREFIX}log_cleaner_"


class CleanerMetrics:
    """Counts the events of one cleaner, and shows its figures once they are watched. Several threads may use it."""

    def __init__(self, meter: Meter, interval_ms: int) -> None:
        meter.begin(Group.CLEANER, Group.KAFKA_NAMES)
        self._meter, self._interval_ms = meter, interval_ms
        self._started_ms = self._round_ms = meter.now_ms()
        self._last_round: Mapping[str, Any] | None = None
        self._figures: Callable[[], CleanerFigures] | None = None
        meter.watch(self._samples)

    def event(self, event: CleanerEvent) -> None:
        """Counts an event."""
        self._meter.count(changes(event))
        if event.kind is EventKind.ROUND:
            self._round_ms = event.time_ms
            self._last_round = event.facts

    def watch(self, figures: Callable[[], CleanerFigures]) -> None:
        """Asks for the figures at each scrape."""
        self._figures = figures

    def end(self) -> None:
        """The cleaner has ended: only what it counted remains."""
        self._meter.forget(self._samples)

    def _samples(self) -> Iterator[Sample]:
        now_ms = self._meter.now_ms()
        yield Sample(f"{PREFIX}last_round_age_seconds", seconds_since(self._round_ms, now_ms))
        if self._last_round is not None:
            yield from _of_last_round(self._last_round)
        figures = None if self._figures is None else self._figures()
        looked_ms = None if figures is None else figures.looked_ms
        since_look_s = seconds_since(self._started_ms if looked_ms is None else looked_ms, now_ms)
        yield Sample(f"{PREFIX}look_interval_seconds", self._interval_ms / 1000)
        yield Sample(f"{PREFIX}last_look_age_seconds", since_look_s)
        yield Sample(f"{KAFKAS}time_since_last_run_ms", round(1000 * since_look_s))
        if figures is not None:
            yield from samples(figures, now_ms)


def changes(event: CleanerEvent) -> Iterator[Change]:
    """What an event changes."""
    facts, topic = event.facts, event.topic or ""
    if (code := facts.get("error_code")) is not None:
        yield Change(f"{PREFIX}errors_total", labels={"error_code": code})
    match event.kind:
        case EventKind.ROUND:
            yield from _of_round(facts, topic)
        case EventKind.FAILED | EventKind.QUARANTINED:
            yield Change(f"{ROUND}failed_logs_total", topic=topic)
        case EventKind.ABANDONED:
            yield Change(f"{ROUND}abandoned_logs_total")
        case EventKind.CONFLICT:
            yield Change(f"{ROUND}conflicting_logs_total")
        case EventKind.RETAINED:
            yield Change(f"{PREFIX}retention_removed_records_total", facts["records"])
            yield Change(f"{PREFIX}retention_removed_bytes_total", facts["bytes"])
        case EventKind.EXPIRED:
            yield Change(f"{PREFIX}expired_versions_total", len(facts["versions"]))
        case EventKind.SWEPT:
            yield Change(f"{PREFIX}swept_files_total", facts["files"])
            yield Change(f"{PREFIX}swept_bytes_total", facts["bytes"])


def _of_round(facts: Mapping[str, Any], topic: str) -> Iterator[Change]:
    yield Change(f"{ROUND}read_bytes_total", facts["bytes_read"], topic=topic)
    yield Change(f"{ROUND}duration_seconds", facts["duration_ms"] / 1000)
    if not facts["changed"]:
        yield Change(f"{ROUND}idle_rounds_total")
        return
    yield Change(f"{ROUND}rounds_total", topic=topic)
    yield Change(f"{ROUND}logs_total", len(facts["partitions"]), topic=topic)
    yield Change(f"{ROUND}input_records_total", facts["records_in"], topic=topic)
    yield Change(f"{ROUND}output_records_total", facts["records_out"], topic=topic)
    yield Change(f"{ROUND}written_bytes_total", facts["bytes_written"], topic=topic)
    for cause, records in facts["removed_by_cause"].items():
        yield Change(f"{ROUND}removed_records_total", records, {"cause": cause}, topic)


def _of_last_round(facts: Mapping[str, Any]) -> Iterator[Sample]:
    yield Sample(f"{KAFKAS}max_clean_time_secs", facts["duration_ms"] / 1000)
    if facts["bytes_read"]:
        yield Sample(f"{KAFKAS}cleaner_recopy_percent", 100 * facts["bytes_written"] / facts["bytes_read"])


def samples(figures: CleanerFigures, now_ms: int) -> Iterator[Sample]:
    """The gauges of a cleaner; its topics are there once a check was completed."""
    yield Sample(f"{PREFIX}running_topics", figures.running_topics)
    yield Sample(f"{PREFIX}held_leases", figures.held_leases)
    yield Sample(f"{PREFIX}cleaners", figures.cleaners)
    if figures.looked_ms is not None:
        yield from _of_catalog(figures.topics.values(), now_ms)
        for name, topic in figures.topics.items():
            yield from _of_topic(name, topic, now_ms)


def _of_catalog(topics: Iterable[TopicFigures], now_ms: int) -> Iterator[Sample]:
    topics = list(topics)
    ratio = max((topic.dirty_ratio for topic in topics), default=0.0)
    overdue_s = max((_overdue_s(topic, now_ms) for topic in topics), default=0.0)
    dirty_s = max((_age_s(topic.dirty_since_ms, now_ms) for topic in topics), default=0.0)
    quarantined = sum(topic.quarantined_logs for topic in topics)
    yield Sample(f"{PREFIX}topics", len(topics))
    yield Sample(f"{PREFIX}unreadable_topics", sum(not topic.is_readable for topic in topics))
    yield Sample(f"{PREFIX}due_topics", sum(topic.due_logs > 0 for topic in topics))
    yield Sample(f"{PREFIX}due_logs", sum(topic.due_logs for topic in topics))
    yield Sample(f"{PREFIX}overdue_topics", sum(topic.overdue_since_ms is not None for topic in topics))
    yield Sample(f"{PREFIX}max_overdue_seconds", overdue_s)
    yield Sample(f"{PREFIX}max_compaction_lag_seconds", dirty_s)
    yield Sample(f"{PREFIX}max_dirty_ratio", ratio)
    yield Sample(f"{PREFIX}dirty_bytes", sum(topic.dirty_bytes for topic in topics))
    yield Sample(f"{PREFIX}quarantined_logs", quarantined)
    yield Sample(f"{KAFKAS}max_dirty_percent", round(100 * ratio, 2))
    yield Sample(f"{KAFKAS}uncleanable_partitions_count", quarantined)
    yield Sample(f"{KAFKAS}uncleanable_bytes", sum(topic.quarantined_bytes for topic in topics))
    yield Sample(f"{KAFKAS}max_compaction_delay_secs", overdue_s)


def _of_topic(name: str, topic: TopicFigures, now_ms: int) -> Iterator[Sample]:
    yield Sample(f"{PREFIX}topic_dirty_ratio", topic.dirty_ratio, name)
    yield Sample(f"{PREFIX}topic_dirty_bytes", topic.dirty_bytes, name)
    yield Sample(f"{PREFIX}topic_overdue_seconds", _overdue_s(topic, now_ms), name)
    yield Sample(f"{PREFIX}topic_due_logs", topic.due_logs, name)
    yield Sample(f"{PREFIX}topic_quarantined_logs", topic.quarantined_logs, name)


def _overdue_s(topic: TopicFigures, now_ms: int) -> float:
    return _age_s(topic.overdue_since_ms, now_ms)


def _age_s(since_ms: int | None, now_ms: int) -> float:
    return 0.0 if since_ms is None else seconds_since(since_ms, now_ms)
