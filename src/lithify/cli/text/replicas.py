"""Replicas as text: a line for each topic of each, errors below; a line for each event of a daemon."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lithify.cli.terminal.output import coded, columns, count, faint, plural, styled, width
from lithify.model.replicas.progress import ReplicaStanding
from lithify.model.settings.units import format_bytes, format_duration, format_time
from lithify.reports.replicas.events import ReplicaEvent, ReplicaEventKind
from lithify.reports.replicas.status import ReplicaStatus

_HEADER = ("REPLICA", "TOPIC", "TARGET", "STATE", "VERSION", "RECORDS", "SIZE", "BEHIND")
_LEFT = ("REPLICA", "TOPIC", "TARGET", "STATE")


def status_lines(found: Sequence[ReplicaStatus]) -> list[str]:
    """RECORDS, SIZE and BEHIND are what the replica has not yet, and since when."""
    first, *rows = columns(_HEADER, [_row(status) for status in found], left=_LEFT)
    lines = [first]
    for row, status in zip(rows, found, strict=True):
        lines.append(row)
        if status.error is not None:
            again = "" if status.next_retry_at is None else f" (again at {status.next_retry_at})"
            lines += _below(f"{status.error}{again}")
        if status.positions_error is not None:
            lines += _below(f"positions of groups: {status.positions_error}")
        if status.positions_behind:
            behind, of = count(status.positions_behind), plural(status.positions or 0, "position")
            lines += _below(f"{behind} of {of} of groups not as at the source")
        if status.compact:
            why_not = status.not_compacting
            lines += _below("compacts by itself" if why_not is None else f"does not compact by itself: {why_not}")
    return lines


def _below(text: str) -> list[str]:
    return [f"     {line}" for line in textwrap.wrap(text, width() - 5)]


def _row(status: ReplicaStatus) -> tuple[str, ...]:
    return (
        status.name,
        status.topic or "(none yet)",
        status.target,
        _state(status),
        _versions(status),
        _or_dash(status.lag_records, count),
        _or_dash(status.lag_bytes, format_bytes),
        _or_dash(status.lag_ms or None, format_duration),
    )


def _state(status: ReplicaStatus) -> str:
    if status.state is ReplicaStanding.FAILED:
        return status.state.upper()
    if status.to_copy_bytes and status.state in (ReplicaStanding.COPYING, ReplicaStanding.REPLICATING):
        return f"{status.state} {100 * status.copied_bytes // status.to_copy_bytes}%"
    return status.state


def _versions(status: ReplicaStatus) -> str:
    """`12`, or `11 of 12`."""
    if status.replica_version == status.source_version or status.source_version is None:
        return _or_dash(status.replica_version, count)
    return f"{_or_dash(status.replica_version, count)} of {count(status.source_version)}"


def _or_dash(number: int | None, text: Callable[[int], str]) -> str:
    return "-" if number is None else text(number)


_COLOURS = {ReplicaEventKind.FAILED: "yellow", ReplicaEventKind.TROUBLE: "yellow"}


def event_line(event: ReplicaEvent) -> str:
    """`2026-11-21T10:00:00Z  copied     orders-to-backup, orders: ...`"""
    kind = event.kind.value.ljust(9)
    colour = _COLOURS.get(event.kind)
    shown = kind if colour is None else styled(kind, fg=colour, bold=True)
    told = _TEXTS[event.kind](event.facts)
    text = told if event.topic is None else f"{event.replica}, {event.topic}: {told}"
    return f"{faint(format_time(event.time_ms))}  {shown}  {' '.join(text.split())}"


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
