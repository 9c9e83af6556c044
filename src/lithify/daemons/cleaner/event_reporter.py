"""Reports the events of a cleaner, one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lithify.daemons.cleaner.cleaner_options import EventListener, ProgressListener, RoundProgress
from lithify.daemons.outages import OutageReporter
from lithify.errors import LithifyError
from lithify.model.failure import LogFailure
from lithify.model.names import LogId, TopicName
from lithify.reports.changed_settings import AlterReport
from lithify.reports.cut import CutReport
from lithify.reports.events import CleanerEvent, EventKind
from lithify.reports.rounds.round import CAUSES, RoundReport

LOOKS = "checks of the topics"
"""What a cleaner tries again and again, as texts name it."""


@dataclass(slots=True)
class EventReporter(OutageReporter):
    """Reports what happened, with the time and the cleaner's id."""

    cleaner_id: str
    listener: EventListener
    progress_listener: ProgressListener | None = None
    """Gets the progress of rounds, where someone watches."""

    def report(self, kind: EventKind, topic: TopicName | None = None, **facts: Any) -> None:
        """Reports one event. Names of facts end with their units."""
        event = CleanerEvent(kind, self.clock.now_ms(), self.cleaner_id, None if topic is None else str(topic), facts)
        with self._lock:
            self.listener(event)

    def told(self, kind: str, **facts: Any) -> None:
        """An event of no topic."""
        self.report(EventKind(kind), **facts)

    def proceeded(self, progress: RoundProgress) -> None:
        """Rounds have begun, have proceeded, or ended."""
        if self.progress_listener is not None:
            self.progress_listener(progress)

    def error(self, topic: TopicName | None, error: LithifyError) -> None:
        """A topic cannot be read, or without one the catalog or the database of leases cannot be reached."""
        self.report(EventKind.TROUBLE, topic, error=str(error), error_code=error.code)

    def look_failed(self, error: LithifyError, last_look_ms: int | None) -> None:
        """A check of the topics failed; `last_look_ms` is when one was last completed."""
        self.outage(LOOKS, error, last_look_ms=last_look_ms)

    def round_done(self, topic: TopicName, report: RoundReport, overdue_ms: int) -> None:
        """A round was committed, or found nothing to change."""
        done = [log for log in report.logs if log.error is None]
        self.report(
            EventKind.ROUND,
            topic,
            run_id=report.run_id,
            version=report.version,
            changed=report.changed,
            partitions=[log.partition for log in done],
            records_in=sum(log.records_in for log in done),
            records_out=sum(log.records_out for log in done),
            removed=sum(log.losers.total for log in done),
            removed_by_cause={cause: sum(getattr(log.losers, cause) for log in done) for cause in CAUSES},
            bytes_read=sum(log.bytes_read for log in done),
            bytes_written=sum(log.bytes_written for log in done),
            overdue_ms=overdue_ms,
            duration_ms=report.duration_ms,
        )

    def retained(self, topic: TopicName, report: CutReport) -> None:
        """Segments past retention were dropped."""
        self.report(
            EventKind.RETAINED,
            topic,
            version=report.version,
            partitions=[log.partition for log in report.logs],
            records=sum(log.records_removed for log in report.logs),
            bytes=sum(log.bytes_removed for log in report.logs),
        )

    def inherited(self, topic: TopicName, report: AlterReport) -> None:
        """A topic got the present settings of its stream."""
        settings = {name: change.after for name, change in report.settings.items()}
        self.report(EventKind.INHERITED, topic, version=report.version, settings=settings)

    def log_failed(self, log: LogId, error: LithifyError, failure: LogFailure) -> None:
        """The round of a log failed and left it unchanged; `failure` has the time of the next try."""
        kind = EventKind.QUARANTINED if failure.quarantined else EventKind.FAILED
        retry_ms = None if failure.quarantined else failure.retry_ms
        facts = {"partition": log.partition, "error": str(error), "error_code": error.code}
        self.report(kind, log.topic, **facts, failures=failure.failures, retry_ms=retry_ms)

    def left(self, kind: EventKind, log: LogId, error: LithifyError) -> None:
        """A round was abandoned or lost a race, and left its log unchanged; this is not a failure of the log."""
        self.report(kind, log.topic, partition=log.partition, error=str(error), error_code=error.code)
