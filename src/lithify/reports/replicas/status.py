"""What `lithify replica` prints of definitions and states. The field names are the JSON keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.replica_progress import ReplicaStanding
from lithify.model.settings.units import format_bytes, format_duration, format_time, plural
from lithify.reports.page import Page, Table
from lithify.reports.page.wording import count, or_dash
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class ReplicaStatus(Report):
    """The replica of one topic, as it is now. Figures are null if one of the two sides cannot be read."""

    name: str
    topic: str | None
    """Null for a stream that has no topics."""
    target: str
    state: ReplicaStanding
    source_version: int | None = None
    replica_version: int | None = None
    """The version of the source that the replica has; null before the first copy is complete."""
    lag_records: int | None = None
    lag_bytes: int | None = None
    """What the source has and the replica lacks, compressed."""
    lag_ms: int | None = None
    """Since when the source has a newer version; 0 if it has none."""
    error: str | None = None
    next_retry_at: str | None = None
    copied_bytes: int = 0
    """Of the pass that is under way."""
    to_copy_bytes: int = 0
    log_end_offsets: Mapping[int, int] | None = None
    """By partition, up to where a consumer group can continue at the replica."""
    positions: int | None = None
    """Of consumer groups at the source, where they are copied."""
    positions_behind: int | None = None
    """Positions that are not the same at the replica: not copied yet, or the group has continued there on its own."""
    positions_error: str | None = None
    """Why the positions could not be copied the last time, or cannot be read; the copies of the topic continue."""
    compact: bool = False
    """Whether it is to compact by itself."""
    not_compacting: str | None = None
    """Why it does not, though it is to."""

    @classmethod
    def listed(cls, reports: Sequence[ReplicaStatus]) -> Page:
        """LAG, LAG BYTES and LAG TIME: records and bytes that a replica does not have yet, and since when."""
        return Page("replicas", table=Table(_HEADER, reports, _row, left=_LEFT, notes=_notes))


@dataclass(frozen=True, slots=True)
class ReplicaInfo(Report):
    """A replica as it is defined."""

    name: str
    source: str
    """The stream or topic."""
    target: str
    throttle_bytes: int | None
    paused: bool
    created_at: str
    sync_groups: bool
    """Whether the positions of consumer groups are copied too."""
    compact: bool
    """Whether its topics compact by themselves, where their sources do not."""

    @classmethod
    def of(cls, definition: ReplicaDefinition) -> ReplicaInfo:
        created_at = format_time(definition.created_ms)
        return cls(
            definition.name,
            definition.what,
            definition.target,
            definition.throttle_bytes,
            definition.paused,
            created_at,
            definition.sync_groups,
            definition.compact,
        )


_HEADER = ("REPLICA", "TOPIC", "TARGET", "STATE", "VERSION", "LAG", "LAG BYTES", "LAG TIME")
_LEFT = ("REPLICA", "TOPIC", "TARGET", "STATE")


def _notes(status: ReplicaStatus) -> list[str]:
    notes = []
    if status.error is not None:
        again = "" if status.next_retry_at is None else f" (again at {status.next_retry_at})"
        notes.append(f"{status.error}{again}")
    if status.positions_error is not None:
        notes.append(f"committed positions: {status.positions_error}")
    if status.positions_behind:
        behind, of = count(status.positions_behind), plural(status.positions or 0, "committed position")
        notes.append(f"{behind} of {of} not as at the source")
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
