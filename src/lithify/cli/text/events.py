"""Events of a cleaner as text: a line for each event, the topic first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lithify.cli.terminal.output import faint, styled
from lithify.model.settings.units import format_bytes, format_duration, format_time, plural
from lithify.reports.events import CleanerEvent, EventKind
from lithify.reports.tables.wording import coded, count

_COLOURS = {
    EventKind.FAILED: "yellow",
    EventKind.TROUBLE: "yellow",
    EventKind.QUARANTINED: "red",
}


def event_line(event: CleanerEvent) -> str:
    """`2026-11-21T10:00:00Z  round        orders  ...`"""
    told = _TEXTS[event.kind](event.facts)
    text = told if event.topic is None else f"{event.topic}: {told}"
    return timed_line(event.time_ms, event.kind.value.ljust(11), _COLOURS.get(event.kind), text)


def timed_line(time_ms: int, kind: str, colour: str | None, text: str) -> str:
    """A line of a daemon's log, whatever line breaks the text has."""
    shown = kind if colour is None else styled(kind, fg=colour, bold=True)
    return f"{faint(format_time(time_ms))}  {shown}  {' '.join(text.split())}"


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
    return "no database for leases, so run only this one cleaner, or give --coordination-url"


def _looked(facts: Mapping[str, Any]) -> str:
    late = f", {format_duration(facts['overdue_ms'])} overdue" if facts["overdue_ms"] else ""
    return (
        f"{plural(facts['due'], 'topic')} of {count(facts['topics'])} due{late} "
        f"(looked for {format_duration(facts['duration_ms'])})"
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
    return f"{plural(len(facts['versions']), 'version')} not kept any more"


def _swept(facts: Mapping[str, Any]) -> str:
    return f"{plural(facts['files'], 'file')} deleted, {format_bytes(facts['bytes'])}"


def _recovered(facts: Mapping[str, Any]) -> str:
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
    EventKind.RECOVERED: _recovered,
    EventKind.STOPPED: lambda facts: str(facts["reason"]),
}
