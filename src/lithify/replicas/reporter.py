"""Reports the events of a daemon, one at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from lithify.errors import LithifyError
from lithify.model.names import TopicName
from lithify.model.replicas.progress import TopicProgress
from lithify.ports.clock import Clock
from lithify.replicas.options import EventListener
from lithify.reports.replicas import MirrorReport
from lithify.reports.replicas.events import ReplicaEvent, ReplicaEventKind

REPEAT_MS = 600_000
"""An error that stays the same is reported again after this time, not at every look."""


@dataclass(slots=True)
class ReplicaReporter:
    """Reports what happened, with the time and the daemon's id."""

    clock: Clock
    daemon_id: str
    listener: EventListener
    _troubles: dict[str, tuple[str, int]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def report(
        self, kind: ReplicaEventKind, replica: str | None = None, topic: TopicName | None = None, **facts: Any
    ) -> None:
        """Reports one event. Names of facts end with their units."""
        name = None if topic is None else str(topic)
        event = ReplicaEvent(kind, self.clock.now_ms(), self.daemon_id, replica, name, facts)
        with self._lock:
            self.listener(event)

    def copied(self, replica: str, topic: TopicName, report: MirrorReport) -> None:
        """The replica of a topic was given a newer version."""
        self.report(
            ReplicaEventKind.COPIED,
            replica,
            topic,
            version=report.replica_version,
            files_copied=report.files_copied,
            bytes_copied=report.bytes_copied,
            files_reused=report.files_reused,
            bytes_reused=report.bytes_reused,
            files_removed=report.files_removed,
            duration_ms=report.duration_ms,
        )

    def failed(self, noted: TopicProgress) -> None:
        """A pass failed, and left the replica as it was."""
        self.report(
            ReplicaEventKind.FAILED,
            noted.replica,
            noted.topic,
            error=noted.error,
            failures=noted.failures,
            retry_ms=noted.retry_ms,
        )

    def trouble(self, what: str, error: LithifyError) -> None:
        """Something that is tried again and again failed; the same error of the same thing is reported seldom."""
        now_ms = self.clock.monotonic_ms()
        with self._lock:
            text, since_ms = self._troubles.get(what, ("", 0))
            if text == str(error) and now_ms - since_ms < REPEAT_MS:
                return
            self._troubles[what] = (str(error), now_ms)
        self.report(ReplicaEventKind.TROUBLE, error=str(error), error_code=error.code)

    def well(self, what: str) -> None:
        """It has succeeded: its next error is reported."""
        with self._lock:
            self._troubles.pop(what, None)
