"""What a daemon reports of the replicas that it keeps up: an event, one line of its output, for each thing it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lithify.model.settings.units import format_bytes, format_duration, format_time, plural
from lithify.reports.events import recovered_text, timed_line
from lithify.reports.page import Line
from lithify.reports.page.wording import coded, count


class ReplicaEventKind(StrEnum):
    """What happened."""

    STARTED = "started"
    COPYING = "copying"
    """A pass copies files; every few seconds."""
    COPIED = "copied"
    """The replica of a topic has a newer version of its source."""
    FAILED = "failed"
    """A pass failed and will be retried."""
    ABANDONED = "abandoned"
    """A pass was abandoned: the daemon stops, the replica was paused or removed, or its lease is lost."""
    TROUBLE = "trouble"
    """Something other than a pass failed: the source, a target, or the database cannot be reached."""
    RECOVERED = "recovered"
    """What a daemon could not reach works again."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ReplicaEvent:
    """One line of a daemon's log. `facts` have names with units last, and values that JSON knows."""

    kind: ReplicaEventKind
    time_ms: int
    daemon: str
    replica: str | None = None
    topic: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Flat: `time`, `event`, `daemon`, `replica`, `topic`, then the facts."""
        return {
            "time": format_time(self.time_ms),
            "event": self.kind.value,
            "daemon": self.daemon,
            "replica": self.replica,
            "topic": self.topic,
            **self.facts,
        }

    def line(self) -> Line:
        """`2026-11-21T10:00:00Z  copied     orders-to-backup, orders: ...`"""
        replica = "" if self.topic is None else f"{self.replica}, {self.topic}: "
        text = f"{replica}{_TEXTS[self.kind](self.facts)}"
        return timed_line(self.time_ms, self.kind.ljust(9), _COLOURS.get(self.kind), text)


_COLOURS = {ReplicaEventKind.FAILED: "yellow", ReplicaEventKind.TROUBLE: "yellow"}


def _started(facts: Mapping[str, Any]) -> str:
    return (
        f"daemon {facts['id']}, {plural(facts['threads'], 'thread')} for each target, checks every "
        f"{format_duration(facts['interval_ms'])}, leases of {format_duration(facts['lease_ms'])}"
    )


def _copying(facts: Mapping[str, Any]) -> str:
    return f"{format_bytes(facts['copied_bytes'])} of {format_bytes(facts['to_copy_bytes'])}"


def _copied(facts: Mapping[str, Any]) -> str:
    files = f"{plural(facts['files_copied'], 'file')}, {format_bytes(facts['bytes_copied'])}"
    used = f" and {plural(facts['files_reused'], 'file')} copied before" if facts["files_reused"] else ""
    return f"version {count(facts['version'])}: {files}{used}, in {format_duration(facts['duration_ms'])}"


def _failed(facts: Mapping[str, Any]) -> str:
    return f"failed {plural(facts['failures'], 'time')}, again at {format_time(facts['retry_ms'])}: {facts['error']}"


_TEXTS: Mapping[ReplicaEventKind, Callable[[Mapping[str, Any]], str]] = {
    ReplicaEventKind.STARTED: _started,
    ReplicaEventKind.COPYING: _copying,
    ReplicaEventKind.COPIED: _copied,
    ReplicaEventKind.FAILED: _failed,
    ReplicaEventKind.ABANDONED: lambda facts: str(facts["reason"]),
    ReplicaEventKind.TROUBLE: lambda facts: coded(facts["error"], facts["error_code"]),
    ReplicaEventKind.RECOVERED: recovered_text,
    ReplicaEventKind.STOPPED: lambda facts: str(facts["reason"]),
}
