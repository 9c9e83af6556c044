"""A catalog at a glance: what `lithify status` prints without a topic. The field names are the JSON keys."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lithify.reports.events import CleanerNote
from lithify.reports.report import Report
from lithify.reports.round import RatesReport


class Standing(StrEnum):
    """The state of a log or a topic, the worst first."""

    UNREADABLE = "unreadable"
    QUARANTINED = "quarantined"
    """Its rounds failed too often; cleaners skip it until it is released (C31)."""
    OVERDUE = "overdue"
    """Past `max.compaction.lag.ms` (C29)."""
    FAILING = "failing"
    """Its last round failed, and it will be retried."""
    DUE = "due"
    WAITING = "waiting"
    """It is dirty and not due, or something in it will expire."""
    CLEAN = "clean"
    """There is nothing to do until the next commit."""


@dataclass(frozen=True, slots=True)
class LogStanding:
    """One log. If it is not due, its ratio also counts bytes above the horizon as dirty."""

    partition: int
    standing: Standing
    why: str
    overdue_ms: int
    due_at_ms: int | None
    dirty_ratio: float
    failures: int
    error: str | None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class TopicOverview(Report):
    """One topic, by its worst log: from `state` to `error` the figures are of that log.

    Null in one that cannot be read, and the ratio also where nothing is compacted. Bytes compressed, times epoch ms.
    """

    topic: str
    state: Standing
    partition: int | None = None
    why: str | None = None
    """Why the log is due, or why not."""
    overdue_ms: int = 0
    due_at_ms: int | None = None
    """When the clock alone makes it due, if it will: not before this time."""
    dirty_ratio: float | None = None
    failures: int = 0
    """Failures of its rounds in a row (C31)."""
    error: str | None = None
    """Why the last of them failed, or why the topic cannot be read."""
    error_code: str | None = None
    logs: int | None = None
    logs_in_state: int | None = None
    records: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CatalogOverview(Report):
    """All topics, the worst first."""

    topics: tuple[TopicOverview, ...]
    now_ms: int
    now_given: bool = False
    cleaners: tuple[CleanerNote, ...] | None = None
    """The cleaners of the catalog, and when each last looked; None where that cannot be read."""
    cleaners_error: str | None = None
    """Why the cleaners could not be read."""
    cleaner_rates: RatesReport | None = None
    """What the cleaners keep to; None is no limit, or their own."""

    def counts(self) -> dict[Standing, int]:
        """The number of topics in each state, the worst first; states without topics are left out."""
        found = [topic.state for topic in self.topics]
        return {standing: found.count(standing) for standing in Standing if standing in found}

    def to_json(self) -> dict[str, Any]:
        return {
            "now_ms": self.now_ms,
            "now_given": self.now_given,
            "counts": {standing.value: number for standing, number in self.counts().items()},
            "topics": [topic.to_json() for topic in self.topics],
            "cleaners": None if self.cleaners is None else [note.to_json() for note in self.cleaners],
            "cleaners_error": self.cleaners_error,
            "cleaner_rates": None if self.cleaner_rates is None else self.cleaner_rates.to_json(),
        }
