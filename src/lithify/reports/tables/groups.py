"""Consumer groups as tables: of all groups, and of what one has left to read."""

from __future__ import annotations

from collections.abc import Sequence

from lithify.model.settings.units import format_duration
from lithify.reports.groups import GroupInfo, GroupLag
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import count, or_dash


def group_table(groups: Sequence[GroupInfo]) -> Table[GroupInfo]:
    """A group in each row."""
    return Table(("GROUP", "PARTITIONS", "COMMITTED", "TOPICS"), groups, _group_row, left=("GROUP", "TOPICS"))


def _group_row(group: GroupInfo) -> tuple[str, ...]:
    return group.group, count(group.partitions), group.committed_at, ", ".join(group.topics)


def lag_table(lags: Sequence[GroupLag]) -> Table[GroupLag]:
    """A log in each row; HOLDS only where one has tombstones for the group."""
    holds = ("HOLDS",) if any(lag.holds_tombstones for lag in lags) else ()
    header = ("LOG", "POSITION", "LOG END", "RECORDS LEFT", "LAG", "COMMITTED", *holds)

    def row(lag: GroupLag) -> tuple[str, ...]:
        return (*_lag_row(lag), *("tombstones" if lag.holds_tombstones else "-" for _ in holds))

    return Table(header, lags, row, left=("LOG", "COMMITTED", *holds), wrap=False)


def _lag_row(lag: GroupLag) -> tuple[str, ...]:
    return (
        f"{lag.topic}-{lag.partition}",
        or_dash(lag.position, count),
        or_dash(lag.log_end_offset, count),
        or_dash(lag.records_left, count),
        or_dash(lag.lag_ms, format_duration),
        lag.committed_at or "never",
    )
