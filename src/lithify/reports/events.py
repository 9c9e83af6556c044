"""What a cleaner reports of its work: an event, one line of its output, for each thing it did, and its note.

It stores the note for `status` in another process. The field names are the JSON keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lithify.model.settings.units import format_bytes, format_duration, format_time, plural
from lithify.reports.page import Accent, Line, notice
from lithify.reports.page.wording import coded, count


class EventKind(StrEnum):
    """What happened."""

    STARTED = "started"
    LOOKED = "looked"
    """A check of all topics of the catalog was completed."""
    ROUND = "round"
    """One topic was compacted."""
    FAILED = "failed"
    """One log failed and will be retried."""
    QUARANTINED = "quarantined"
    """One log failed for the last time."""
    ABANDONED = "abandoned"
    """A round was abandoned: the cleaner stops, or its lease is lost."""
    CONFLICT = "conflict"
    """Other commits changed a log during a round, too often."""
    RETAINED = "retained"
    INHERITED = "inherited"
    """One topic got the present settings of its stream."""
    EXPIRED = "expired"
    """Retained versions expired by their age."""
    SWEPT = "swept"
    TROUBLE = "trouble"
    """Something other than a round failed: an unreadable topic, an unreachable database."""
    RECOVERED = "recovered"
    """What failed all the time works again."""
    WAITING = "waiting"
    """A job waits for executors, or for the Python workers of the first tasks."""
    WAITED = "waited"
    """The wait is over."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class CleanerEvent:
    """One line of a cleaner's log. `facts` have names with units last, and values that JSON knows."""

    kind: EventKind
    time_ms: int
    cleaner: str
    topic: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Flat: `time`, `event`, `cleaner`, `topic`, then the facts."""
        return {
            "time": format_time(self.time_ms),
            "event": self.kind.value,
            "cleaner": self.cleaner,
            "topic": self.topic,
            **self.facts,
        }

    def line(self) -> Line:
        """`2026-11-21T10:00:00Z  round        orders  ...`"""
        topic = "" if self.topic is None else f"{self.topic}: "
        text = f"{topic}{event_text(self.kind, self.facts)}"
        return timed_line(self.time_ms, self.kind.ljust(11), _COLOURS.get(self.kind), text)


_COLOURS = {
    EventKind.FAILED: "yellow",
    EventKind.TROUBLE: "yellow",
    EventKind.QUARANTINED: "red",
}


def event_text(kind: EventKind, facts: Mapping[str, Any]) -> str:
    """Its text, without its time and topic."""
    return _TEXTS[kind](facts)


def timed_line(time_ms: int, kind: str, colour: str | None, text: str) -> Line:
    """A line of a daemon's log, whatever line breaks the text has."""
    shown = kind if colour is None else Accent(kind, colour, bold=True)
    return notice(Accent(format_time(time_ms), faint=True), "  ", shown, f"  {' '.join(text.split())}")


def _error(facts: Mapping[str, Any]) -> str:
    return coded(facts["error"], facts["error_code"])


def _started(facts: Mapping[str, Any]) -> str:
    return (
        f"cleaner {facts['id']}, {plural(facts['threads'], 'thread')}, checks every "
        f"{format_duration(facts['interval_ms'])}; {_leases(facts)}"
    )


def _leases(facts: Mapping[str, Any]) -> str:
    if facts["shared"]:
        return f"shares the work with others, leases of {format_duration(facts['lease_ms'])}"
    return "no lease database: run only this one cleaner, or pass --coordination-url"


def _looked(facts: Mapping[str, Any]) -> str:
    late = f", {format_duration(facts['overdue_ms'])} overdue" if facts["overdue_ms"] else ""
    return (
        f"{plural(facts['due'], 'topic')} of {count(facts['topics'])} due{late} "
        f"(checked for {format_duration(facts['duration_ms'])})"
    )


def _round(facts: Mapping[str, Any]) -> str:
    took = format_duration(facts["duration_ms"])
    if not facts["changed"]:
        return f"nothing to do, in {took}"
    late = f", was {format_duration(facts['overdue_ms'])} overdue" if facts["overdue_ms"] else ""
    before, after = count(facts["records_in"]), count(facts["records_out"])
    moved = f"read {format_bytes(facts['bytes_read'])}, wrote {format_bytes(facts['bytes_written'])}"
    return (
        f"{plural(len(facts['partitions']), 'log')}, {before} → {after} records, {moved}, in {took}{late}, "
        f"version {facts['version']}, run {facts['run_id']}"
    )


def _failed(facts: Mapping[str, Any]) -> str:
    times, again = plural(facts["failures"], "time"), format_time(facts["retry_ms"])
    return f"partition {facts['partition']} failed {times}, again at {again}: {_error(facts)}"


def _quarantined(facts: Mapping[str, Any]) -> str:
    return (
        f"partition {facts['partition']} failed {plural(facts['failures'], 'time')} and is quarantined until "
        f"`lithify quarantine release`: {_error(facts)}"
    )


def _left(facts: Mapping[str, Any]) -> str:
    return f"partition {facts['partition']}: {_error(facts)}"


def _retained(facts: Mapping[str, Any]) -> str:
    return (
        f"{plural(facts['records'], 'record')} past retention removed, {format_bytes(facts['bytes'])}, "
        f"version {facts['version']}"
    )


def _inherited(facts: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in facts["settings"].items())
    return f"inherited {settings} from its stream, version {facts['version']}"


def _expired(facts: Mapping[str, Any]) -> str:
    return f"{plural(len(facts['versions']), 'version')} expired"


def _swept(facts: Mapping[str, Any]) -> str:
    return f"{plural(facts['files'], 'file')} deleted, {format_bytes(facts['bytes'])}"


def recovered_text(facts: Mapping[str, Any]) -> str:
    """`the lease database: works again, after 2m 5s`"""
    return f"{facts['what']}: works again, after {format_duration(facts['duration_ms'])}"


_TEXTS: Mapping[EventKind, Callable[[Mapping[str, Any]], str]] = {
    EventKind.STARTED: _started,
    EventKind.LOOKED: _looked,
    EventKind.ROUND: _round,
    EventKind.FAILED: _failed,
    EventKind.QUARANTINED: _quarantined,
    EventKind.ABANDONED: _left,
    EventKind.CONFLICT: _left,
    EventKind.RETAINED: _retained,
    EventKind.INHERITED: _inherited,
    EventKind.EXPIRED: _expired,
    EventKind.SWEPT: _swept,
    EventKind.TROUBLE: _error,
    EventKind.RECOVERED: recovered_text,
    EventKind.WAITING: lambda facts: str(facts["text"]),
    EventKind.WAITED: lambda facts: str(facts["text"]),
    EventKind.STOPPED: lambda facts: str(facts["reason"]),
}
