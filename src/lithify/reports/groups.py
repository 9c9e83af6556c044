"""Consumer groups: what `lithify group` prints. The field names are the JSON keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lithify.model.settings.units import format_duration
from lithify.reports.page import Line, Page, Table, result
from lithify.reports.page.wording import count, or_dash
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class GroupLag(Report):
    """What a group has left to read of one log. Times are ISO 8601."""

    group: str
    topic: str
    partition: int
    position: int | None
    """The offset at which it continues; null if it has committed none, and would read from the start."""
    log_end_offset: int | None
    """Null where the log no longer exists."""
    lag: int | None
    """Records that are really left, without offsets that rounds have removed, which Kafka's lag counts too.

    Null where the group cannot continue at its position.
    """
    lag_ms: int | None
    """The lag time: age of the oldest record left; 0 if none is."""
    holds_tombstones: bool | None
    """Whether tombstones remain that would have expired without it; null if the log no longer exists."""
    committed_at: str | None
    error: str | None = None
    """Why the group cannot continue at its position, or the log cannot be read, and what to do."""
    error_code: str | None = None

    @property
    def records_left(self) -> int | None:
        """The deprecated name of `lag`."""
        return self.lag

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "records_left": self.records_left}

    @classmethod
    def listed(cls, reports: Sequence[GroupLag]) -> Page:
        return Page("what the group has left to read", table=_lag_table(reports))


@dataclass(frozen=True, slots=True)
class GroupInfo(Report):
    """A group, and the topics that it has positions in."""

    group: str
    topics: tuple[str, ...]
    partitions: int
    """Logs in which it has a position."""
    committed_at: str
    """When it last committed."""

    @classmethod
    def listed(cls, reports: Sequence[GroupInfo]) -> Page:
        header = ("GROUP", "PARTITIONS", "COMMITTED AT", "TOPICS")
        return Page("consumer groups", table=Table(header, reports, _group_row, left=("GROUP", "TOPICS")))


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


def unread_groups(error: str | None) -> list[Line]:
    """What is said where positions of groups cannot be read (C61, C62)."""
    if error is None:
        return []
    return [
        result(
            f"groups of this topic count as having read nothing, as their committed positions cannot be read: {error}"
        )
    ]


def named_groups(names: Sequence[str]) -> str:
    return f"group{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _group_row(group: GroupInfo) -> tuple[str, ...]:
    return group.group, count(group.partitions), group.committed_at, ", ".join(group.topics)


def _lag_table(lags: Sequence[GroupLag]) -> Table[GroupLag]:
    """A log in each row; HOLDS only where one has tombstones for the group."""
    holds = ("HOLDS",) if any(lag.holds_tombstones for lag in lags) else ()
    header = ("TOPIC", "PARTITION", "POSITION", "LOG END", "LAG", "LAG TIME", "COMMITTED AT", *holds)

    def row(lag: GroupLag) -> tuple[str, ...]:
        return (*_lag_row(lag), *("tombstones" if lag.holds_tombstones else "-" for _ in holds))

    return Table(header, lags, row, left=("TOPIC", "COMMITTED AT", *holds), wrap=False)


def _lag_row(lag: GroupLag) -> tuple[str, ...]:
    return (
        lag.topic,
        str(lag.partition),
        or_dash(lag.position, count),
        or_dash(lag.log_end_offset, count),
        or_dash(lag.lag, count),
        or_dash(lag.lag_ms, format_duration),
        lag.committed_at or "never",
    )
