"""The logs whose rounds fail, as a table; the error of each below (C31)."""

from __future__ import annotations

from lithify.model.names import partition_of
from lithify.model.settings.units import format_duration
from lithify.reports.quarantine import FailingLog, QuarantineReport
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import coded, count


def quarantine_table(found: QuarantineReport) -> Table[FailingLog]:
    """The worst first."""
    return Table(
        ("LOG", "STATE", "FAILURES", "SINCE", "NEXT TRY"),
        found.logs,
        lambda log: _row(log, found.now_ms),
        left=("LOG", "STATE"),
        notes=lambda log: [coded(log.error, log.error_code)],
    )


def _row(log: FailingLog, now_ms: int) -> tuple[str, ...]:
    since_ms = log.failed_ms if log.quarantined else log.since_ms
    return (
        partition_of(log.topic, log.partition),
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
