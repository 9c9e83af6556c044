"""Replicas as a table: a row for each topic of each, errors below."""

from __future__ import annotations

from collections.abc import Sequence

from lithify.model.replicas.progress import ReplicaStanding
from lithify.model.settings.units import format_bytes, format_duration, plural
from lithify.reports.replicas.status import ReplicaStatus
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import count, or_dash

_HEADER = ("REPLICA", "TOPIC", "TARGET", "STATE", "VERSION", "RECORDS LEFT", "BYTES LEFT", "BEHIND")
_LEFT = ("REPLICA", "TOPIC", "TARGET", "STATE")


def replica_table(found: Sequence[ReplicaStatus]) -> Table[ReplicaStatus]:
    """RECORDS LEFT, BYTES LEFT and BEHIND are what the replica does not have yet, and since when."""
    return Table(_HEADER, found, _row, left=_LEFT, notes=_notes)


def _notes(status: ReplicaStatus) -> list[str]:
    notes = []
    if status.error is not None:
        again = "" if status.next_retry_at is None else f" (again at {status.next_retry_at})"
        notes.append(f"{status.error}{again}")
    if status.positions_error is not None:
        notes.append(f"positions of groups: {status.positions_error}")
    if status.positions_behind:
        behind, of = count(status.positions_behind), plural(status.positions or 0, "position")
        notes.append(f"{behind} of {of} of groups not as at the source")
    if status.compact:
        why_not = status.not_compacting
        notes.append("compacts by itself" if why_not is None else f"does not compact by itself: {why_not}")
    return notes


def _row(status: ReplicaStatus) -> tuple[str, ...]:
    return (
        status.name,
        status.topic or "(none yet)",
        status.target,
        _state(status),
        _versions(status),
        or_dash(status.lag_records, count),
        or_dash(status.lag_bytes, format_bytes),
        or_dash(status.lag_ms or None, format_duration),
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
        return or_dash(status.replica_version, count)
    return f"{or_dash(status.replica_version, count)} of {count(status.source_version)}"
