"""What a round would do to a topic now (C30). The field names are the JSON keys; bytes are compressed sizes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from lithify.model.settings.units import format_bytes, format_second
from lithify.reports.groups import named_groups, unread_groups
from lithify.reports.page import Page, Table, notice
from lithify.reports.page.wording import as_judged, at_most, change, count
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class LogPlanReport:
    """What a round would do to one log now; what says "at most" is an upper bound (C30)."""

    partition: int
    log_start_offset: int
    first_dirty_offset: int
    horizon: int
    horizon_limited_by: str
    horizon_held_by: str | None
    log_end_offset: int
    log_start_offset_after: int
    records_in: int
    bytes_in: int
    segments_in: int
    segments_gone: int
    segments_scanned: int
    segments_rewritten_at_most: int
    bytes_read_at_most: int
    bytes_written_at_most: int
    tombstones_expire_below: int
    values_expire_before_ms: int | None
    held_by: tuple[str, ...]
    """The groups that hold tombstones which would expire (C61)."""
    idle: bool


@dataclass(frozen=True, slots=True)
class PlanReport(Report):
    """What `compact` would do now. The extra space is needed until the old version is swept."""

    topic: str
    version: int
    logs: tuple[LogPlanReport, ...]
    now_ms: int
    now_given: bool = False
    groups_error: str | None = None
    old_version_until_ms: int | None = None
    """The files of the old version remain at least until then, if the round runs now."""
    worker_bytes_at_most: int | None = None
    """Memory of each Python worker of Spark, of which as many run as tasks at once (C38)."""

    @property
    def extra_bytes_needed(self) -> int:
        return sum(log.bytes_written_at_most for log in self.logs)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "extra_bytes_needed": self.extra_bytes_needed}

    def page(self) -> Page:
        lines = [*unread_groups(self.groups_error), notice(_plan_summary(self))]
        return Page(self.topic, "plan of a round", _plan_table(self), lines)


def _plan_table(plan: PlanReport) -> Table[LogPlanReport]:
    """What a round would change in the logs, and its cost."""
    gone = any(log.segments_gone for log in plan.logs)
    header = ("PARTITION", "CLEAN BELOW", "RECORDS", *(("DROPPED",) if gone else ()), *_PLAN_COSTS)
    return Table(header, plan.logs, partial(_plan_row, gone=gone), left=("HORIZON",))


_PLAN_COSTS = ("SEGMENTS", "READS", "WRITES", "HORIZON")


def _plan_row(log: LogPlanReport, *, gone: bool) -> tuple[str, ...]:
    return (
        str(log.partition),
        change(log.first_dirty_offset, log.horizon, count),
        count(log.records_in),
        *((count(log.segments_gone),) if gone else ()),
        f"{count(log.segments_rewritten_at_most)} of {count(log.segments_in)}",
        at_most(log.bytes_read_at_most),
        at_most(log.bytes_written_at_most),
        horizon_text(log.horizon_limited_by, None) + _plan_notes(log),
    )


def _plan_notes(log: LogPlanReport) -> str:
    held = f", tombstones held for {named_groups(log.held_by)}" if log.held_by else ""
    return f"{held}{', nothing to do' if log.idle else ''}"


def horizon_text(limited_by: str, held_by: str | None) -> str:
    """What limits the horizon."""
    if limited_by == "log end":
        return "at the log end"
    return f"held by {limited_by}" + (f" in {held_by.rpartition('/')[2]}" if held_by else "")


def _plan_summary(plan: PlanReport) -> str:
    """One line: the bounds of the whole run."""
    if all(log.idle for log in plan.logs):
        return f"{plan.topic}: a round would change nothing{as_judged(plan.now_ms, given=plan.now_given)}"
    read = format_bytes(sum(log.bytes_read_at_most for log in plan.logs))
    extra = format_bytes(plan.extra_bytes_needed)
    return (
        f"{plan.topic}: a round would read at most {read} and write at most {extra}, which must be free beside the "
        f"old version; nothing was changed{as_judged(plan.now_ms, given=plan.now_given)}"
    )


def space_needed(topic: str, extra_bytes: int, old_version_until_ms: int) -> str:
    """One line: the free space that a round may need, and until when (C42)."""
    until = format_second(old_version_until_ms)
    return (
        f"{topic}: needs up to {format_bytes(extra_bytes)} free until the replaced files are deleted, at {until} at "
        "the earliest"
    )
