"""Reports what a gateway does with standing jobs, one event at a time; an outage when it begins, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lithify.daemons.outages import OutageReporter
from lithify.gateway.standing.options import JobListener
from lithify.reports.jobs.job_events import JobEvent, JobEventKind


@dataclass(slots=True)
class JobReporter(OutageReporter):
    """For several threads."""

    gateway: str
    listener: JobListener

    def report(self, kind: JobEventKind, job: str | None = None, **facts: Any) -> None:
        """Reports one event. Names of facts end with their units."""
        event = JobEvent(kind, self.clock.now_ms(), self.gateway, job, facts)
        with self._lock:
            self.listener(event)

    def told(self, kind: str, **facts: Any) -> None:
        """An event of no topic."""
        self.report(JobEventKind(kind), **facts)
