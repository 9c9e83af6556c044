"""Events of a replica daemon as text: a line for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lithify.cli.text.events import timed_line
from lithify.model.settings.units import format_bytes, format_duration, format_time, plural
from lithify.reports.replicas.events import ReplicaEvent, ReplicaEventKind
from lithify.reports.tables.wording import coded, count

_COLOURS = {ReplicaEventKind.FAILED: "yellow", ReplicaEventKind.TROUBLE: "yellow"}


def event_line(event: ReplicaEvent) -> str:
    """`2026-11-21T10:00:00Z  copied     orders-to-backup, orders: ...`"""
    told = _TEXTS[event.kind](event.facts)
    text = told if event.topic is None else f"{event.replica}, {event.topic}: {told}"
    return timed_line(event.time_ms, event.kind.value.ljust(9), _COLOURS.get(event.kind), text)


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
    ReplicaEventKind.STOPPED: lambda facts: str(facts["reason"]),
}
