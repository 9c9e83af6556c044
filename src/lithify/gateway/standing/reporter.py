"""Reports what a gateway does with standing jobs, one event at a time; an outage when it begins, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from lithify.daemons.outages import ToldOutages
from lithify.errors import LithifyError
from lithify.gateway.standing.options import JobListener
from lithify.ports.clock import Clock
from lithify.reports.jobs.job_events import JobEvent, JobEventKind


@dataclass(slots=True)
class JobReporter:
    """For several threads."""

    clock: Clock
    gateway: str
    listener: JobListener
    _outages: ToldOutages = field(init=False)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._outages = ToldOutages(self.clock.monotonic_ms)

    def report(self, kind: JobEventKind, job: str | None = None, **facts: Any) -> None:
        """Reports one event. Names of facts end with their units."""
        event = JobEvent(kind, self.clock.now_ms(), self.gateway, job, facts)
        with self._lock:
            self.listener(event)

    def outage(self, what: str, error: LithifyError) -> None:
        """Something that is retried failed."""
        if self._outages.is_news(what, error.code):
            self.report(JobEventKind.TROUBLE, error=str(error), error_code=error.code)

    def defect(self, error: LithifyError) -> None:
        """The same of what nothing ends."""
        self.outage(str(error), error)

    def well(self, what: str) -> None:
        """It succeeded: reported if it had failed before."""
        if (duration_ms := self._outages.over(what)) is not None:
            self.report(JobEventKind.RECOVERED, what=what, duration_ms=duration_ms)
