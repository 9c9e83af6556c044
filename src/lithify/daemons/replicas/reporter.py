"""Reports the events of a daemon, one at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lithify.daemons.outages import OutageReporter
from lithify.daemons.replicas.daemon_options import EventListener
from lithify.model.names import TopicName
from lithify.model.replicas.replica_progress import TopicProgress
from lithify.reports.replicas import MirrorReport
from lithify.reports.replicas.replica_events import ReplicaEvent, ReplicaEventKind

LOOKS = "checks of the replicas"
"""What a daemon tries again and again, as texts name it."""


@dataclass(slots=True)
class ReplicaReporter(OutageReporter):
    """Reports what happened, with the time and the daemon's id."""

    daemon_id: str
    listener: EventListener

    def report(
        self, kind: ReplicaEventKind, replica: str | None = None, topic: TopicName | None = None, **facts: Any
    ) -> None:
        """Reports one event. Names of facts end with their units."""
        name = None if topic is None else str(topic)
        event = ReplicaEvent(kind, self.clock.now_ms(), self.daemon_id, replica, name, facts)
        with self._lock:
            self.listener(event)

    def told(self, kind: str, **facts: Any) -> None:
        """An event of no topic."""
        self.report(ReplicaEventKind(kind), **facts)

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
