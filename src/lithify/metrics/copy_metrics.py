"""The metrics of ingests, and of what brings records of a topic elsewhere: `publish`, `hydrate`.

batches, records ─► counters
their logs, and those of notes ─► the lag of each topic, and since when it is known
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Protocol

from lithify.metrics.meter import Change, Meter, Sample, seconds_since
from lithify.metrics.table import PREFIX, Group
from lithify.reports.ingest import IngestBatch, IngestNote


class FollowedLog(Protocol):
    """One log of a note of `publish` or `hydrate`."""

    @property
    def lag(self) -> int | None: ...


class FollowNote(Protocol):
    """A note of `publish` or `hydrate`."""

    @property
    def event(self) -> str: ...

    @property
    def logs(self) -> Sequence[FollowedLog]: ...


class _Lags:
    """The lag of each topic of one copy, as it was last known, and whether a system that it needs is away."""

    def __init__(self, meter: Meter, verb: str) -> None:
        self._meter, self._verb = meter, verb
        self._seen_ms = meter.now_ms()
        self._lags: dict[str, int | None] = {}
        self._is_away = False
        self._lock = Lock()

    def see(self, topic: str, lag: int | None) -> None:
        """None is a lag that the source does not tell."""
        with self._lock:
            self._lags[topic] = lag
            self._seen_ms = self._meter.now_ms()

    def hear(self, event: str) -> None:
        """Takes the event of a note: an outage is over with its end, whatever other one there is."""
        if event in ("outage", "recovered"):
            self._is_away = event == "outage"

    def samples(self) -> Iterator[Sample]:
        with self._lock:
            lags, seen_ms = dict(self._lags), self._seen_ms
        known = {topic: lag for topic, lag in lags.items() if lag is not None}
        name = f"{PREFIX}{self._verb}"
        yield Sample(f"{name}_outage", self._is_away)
        yield Sample(f"{name}_lag_age_seconds", seconds_since(seen_ms, self._meter.now_ms()))
        if known and len(known) == len(lags):
            yield Sample(f"{name}_lag", sum(known.values()))
        for topic, lag in known.items():
            yield Sample(f"{PREFIX}topic_{self._verb}_lag", lag, topic)


class IngestMetrics:
    """Counts the batches and notes of one ingest. Several threads may use it."""

    def __init__(self, meter: Meter) -> None:
        meter.begin(Group.INGEST)
        self._meter, self._lags = meter, _Lags(meter, "ingest")
        self._topics: set[str] = set()
        self._failed: set[str] = set()
        meter.watch(self._samples)

    def batch(self, batch: IngestBatch) -> None:
        """Counts a batch."""
        self._topics.add(batch.topic)
        self._failed.discard(batch.topic)
        self._lags.see(batch.topic, batch.lag)
        if batch.records:
            self._meter.count(
                [
                    Change(f"{PREFIX}ingest_batches_total", topic=batch.topic),
                    Change(f"{PREFIX}ingest_records_total", batch.records, topic=batch.topic),
                ]
            )

    def note(self, note: IngestNote) -> None:
        """Takes the lag of a note, an outage, or that a topic has failed."""
        self._lags.hear(note.event)
        if note.topic is None:
            return
        self._topics.add(note.topic)
        if note.event == "failed":
            self._failed.add(note.topic)
            self._meter.count([Change(f"{PREFIX}errors_total", labels={"error_code": note.error_code or ""})])
        elif note.logs:
            self._lags.see(note.topic, note.lag)

    def end(self) -> None:
        """The ingest has ended: only what it counted remains."""
        self._meter.forget(self._samples)

    def _samples(self) -> Iterator[Sample]:
        yield Sample(f"{PREFIX}ingest_topics", len(self._topics))
        yield Sample(f"{PREFIX}ingest_failed_topics", len(self._failed))
        yield from self._lags.samples()


class FollowMetrics:
    """Counts the records and notes of one run of `publish` or `hydrate`, of one topic. Several threads may use it."""

    def __init__(self, meter: Meter, group: Group, verb: str, topic: str) -> None:
        meter.begin(group)
        self._meter, self._topic, self._records = meter, topic, f"{PREFIX}{verb}_records_total"
        self._lags = _Lags(meter, verb)
        meter.watch(self._lags.samples)

    def records(self, records: int) -> None:
        """So many more records were brought there."""
        self._meter.count([Change(self._records, records, topic=self._topic)])

    def note(self, note: FollowNote) -> None:
        """Takes the lag of a note, or an outage."""
        self._lags.hear(note.event)
        if note.logs:
            self._lags.see(self._topic, sum(log.lag or 0 for log in note.logs))

    def end(self) -> None:
        """The run has ended: only what it counted remains."""
        self._meter.forget(self._lags.samples)


def publish_metrics(meter: Meter, topic: str) -> FollowMetrics:
    return FollowMetrics(meter, Group.PUBLISH, "publish", topic)


def hydrate_metrics(meter: Meter, topic: str) -> FollowMetrics:
    return FollowMetrics(meter, Group.HYDRATE, "hydrate", topic)
