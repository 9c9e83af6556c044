"""Consumer groups: what `lithify group` prints. The field names are the JSON keys."""

from __future__ import annotations

from dataclasses import dataclass

from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class GroupLag(Report):
    """What a group has left to read of one log. Times are ISO 8601."""

    group: str
    topic: str
    partition: int
    position: int | None
    """The offset at which it continues; null where it has committed none, and would read from the start."""
    log_end_offset: int | None
    """Null where the log no longer exists."""
    records_left: int | None
    """Records that are really left; null where the group cannot continue at its position."""
    lag_ms: int | None
    """Age of the oldest record left; 0 if none is."""
    holds_tombstones: bool | None
    """Whether tombstones stay that would have expired, but for it; null where the log no longer exists."""
    committed_at: str | None
    error: str | None = None
    """Why the group cannot continue at its position, or the log cannot be read, and what to do."""
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class GroupInfo(Report):
    """A group, and the topics that it has positions in."""

    group: str
    topics: tuple[str, ...]
    partitions: int
    """Logs in which it has a position."""
    committed_at: str
    """When it last committed."""


@dataclass(frozen=True, slots=True)
class ChangedPosition:
    """The position of a group in one log before and after; null: none."""

    partition: int
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class GroupReset(Report):
    """Positions that were changed or deleted, in one topic."""

    group: str
    topic: str
    positions: tuple[ChangedPosition, ...]
