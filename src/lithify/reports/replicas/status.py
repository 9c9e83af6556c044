"""What `lithify replica` prints of definitions and states. The field names are the JSON keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.progress import ReplicaStanding
from lithify.model.settings.units import format_time
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class ReplicaStatus(Report):
    """The replica of one topic, as it is now. Figures are null where one of the two sides cannot be read."""

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
    """What the source has and the replica has not, compressed."""
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
    """Those of them that are not the same at the replica: not copied yet, or the group has gone its own way there."""
    positions_error: str | None = None
    """Why the positions could not be copied the last time, or cannot be read; the copies of the topic go on."""
    compact: bool = False
    """Whether it is to compact by itself."""
    not_compacting: str | None = None
    """Why it does not, though it is to."""


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
