"""Logs whose rounds fail: what `lithify quarantine` prints (C31). The field names are the JSON keys."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.failure import LogFailure
from lithify.model.names import LogId, in_order
from lithify.model.settings.units import format_duration
from lithify.reports.page import Page, Table, aside
from lithify.reports.page.wording import coded, count
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class FailingLog(Report):
    """A log that is quarantined, or that failed and will be retried. Times in epoch ms."""

    topic: str
    partition: int
    quarantined: bool
    failures: int
    """In a row."""
    since_ms: int
    """When the first of them was."""
    failed_ms: int
    """When the last of them was; a quarantine began with it."""
    retry_ms: int | None
    """Cleaners do not retry it before this time; null if it is quarantined."""
    error: str
    error_code: str | None
    """Null if an earlier version of Lithify noted it."""


@dataclass(frozen=True, slots=True)
class UnreadableTopic:
    """A topic that cannot be read, and why."""

    topic: str
    error: str
    error_code: str


@dataclass(frozen=True, slots=True)
class QuarantineReport(Report):
    """The failing logs of a catalog, the worst first."""

    logs: tuple[FailingLog, ...]
    unreadable: tuple[UnreadableTopic, ...]
    now_ms: int

    def page(self) -> Page:
        unreadable = [f"{topic.topic}: {topic.error}" for topic in self.unreadable]
        lines = unreadable if self.logs or unreadable else ["no log fails"]
        return Page("logs whose rounds fail", "", _quarantine_table(self) if self.logs else None, [*map(aside, lines)])


@dataclass(frozen=True, slots=True)
class ReleaseReport(Report):
    """Logs that cleaners retry at once, with their failures so far."""

    topic: str
    released: tuple[FailingLog, ...]


def failing_log(log: LogId, failure: LogFailure) -> FailingLog:
    """The report of a log with that failure."""
    return FailingLog(
        topic=str(log.topic),
        partition=log.partition,
        quarantined=failure.quarantined,
        failures=failure.failures,
        since_ms=failure.first_ms,
        failed_ms=failure.last_ms,
        retry_ms=None if failure.quarantined else failure.retry_ms,
        error=failure.error,
        error_code=failure.error_code,
    )


def worst_first(logs: list[FailingLog]) -> tuple[FailingLog, ...]:
    """Quarantined logs first, the longest failing of them first; then by failures."""
    return tuple(sorted(logs, key=lambda log: (not log.quarantined, -log.failures, log.since_ms, in_order(log.topic))))


def _quarantine_table(report: QuarantineReport) -> Table[FailingLog]:
    """The worst first."""
    return Table(
        ("TOPIC", "PARTITION", "STATE", "FAILURES", "SINCE", "NEXT TRY"),
        report.logs,
        lambda log: _row(log, report.now_ms),
        left=("TOPIC", "STATE"),
        notes=lambda log: [coded(log.error, log.error_code)],
    )


def _row(log: FailingLog, now_ms: int) -> tuple[str, ...]:
    since_ms = log.failed_ms if log.quarantined else log.since_ms
    return (
        log.topic,
        str(log.partition),
        "QUARANTINED" if log.quarantined else "failing",
        count(log.failures),
        f"{format_duration(max(0, now_ms - since_ms))} ago",
        _next_try(log, now_ms),
    )


def _next_try(log: FailingLog, now_ms: int) -> str:
    if log.retry_ms is None:
        return "never"
    waits = log.failed_ms <= now_ms < log.retry_ms  # a failure in the future (a clock was ahead) delays no try
    return f"in {format_duration(log.retry_ms - now_ms)}" if waits else "now"
