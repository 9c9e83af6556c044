"""Rounds and plans as tables of their logs, with a summary of one line; and a table of rounds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lithify.model.settings.units import format_bytes, format_duration, format_time, plural
from lithify.reports.round import LogPlanReport, LogReport, Losers, PlanReport, RoundReport
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import change, change_of, count

_CAUSES = {
    "superseded": ("superseded", "superseded"),
    "expired_tombstone": ("expired tombstone", "expired tombstones"),
    "no_key": ("without a key", "without a key"),
    "past_retention": ("past retention", "past retention"),
    "below_start": ("below the log start", "below the log start"),
}
"""Causes as text, for one record and for several."""


def losers_text(losers: Losers) -> str:
    """`790 superseded, 10 expired tombstones`."""
    counted = [(getattr(losers, name), texts) for name, texts in _CAUSES.items()]
    return ", ".join(f"{count(number)} {texts[number > 1]}" for number, texts in counted if number) or "nothing"


def round_table(report: RoundReport) -> Table[LogReport]:
    """What became of the logs."""
    moved = any(log.log_start_offset != log.log_start_offset_after for log in report.logs)
    header = ("LOG", *(("START",) if moved else ()), "CLEAN BELOW", "RECORDS", "BYTES", "REMOVED")
    return Table(header, report.logs, partial(_log_row, moved=moved), left=("REMOVED",))


def unread_groups(error: str) -> str:
    """What is said where positions of groups cannot be read (C61, C62)."""
    return f"groups of this topic count as having read nothing, as their positions cannot be read: {error}"


def _log_row(log: LogReport, *, moved: bool) -> tuple[str, ...]:
    start = change(log.log_start_offset, log.log_start_offset_after, count)
    return (
        str(log.partition),
        *((start,) if moved else ()),
        change(log.first_dirty_offset, log.first_dirty_offset_after, count),
        change(log.records_in, log.records_out, count),
        change(log.bytes_in, log.bytes_out, format_bytes),
        _removed(log),
    )


def _removed(log: LogReport) -> str:
    if log.error is not None:
        return "FAILED, the log is as it was"
    notes = [losers_text(log.losers) if log.changed else "nothing to do"]
    if log.tombstones_held:
        notes.append(f"{plural(log.tombstones_held, 'expired tombstone')} held by records above the horizon")
    if log.held_by:
        notes.append(f"tombstones held for {_groups(log.held_by)}")
    if log.missed_by:
        notes.append(f"tombstones went that {_groups(log.missed_by)} had not read")
    if log.tombstones_unversioned:
        notes.append(f"{plural(log.tombstones_unversioned, 'tombstone')} without an order lost")
    held = "" if log.horizon_limited_by == "log end" else f" (horizon held by {log.horizon_limited_by})"
    return "; ".join(notes) + held


def _groups(names: Sequence[str]) -> str:
    return f"group{'s' if len(names) > 1 else ''} {', '.join(names)}"


def round_summary(report: RoundReport) -> str:
    """One line: records and bytes before and after, and the time of each phase."""
    if not report.changed and not report.failed:
        return f"{report.topic}: nothing to do, version {report.version} stays{_judged(report)}"
    logs = report.logs  # failed ones too, which have what they had
    records = change_of(sum(log.records_in for log in logs), sum(log.records_out for log in logs), "record")
    size = change(sum(log.bytes_in for log in logs), sum(log.bytes_out for log in logs), format_bytes)
    failed = f", {plural(len(report.failed), 'log')} FAILED" if report.failed else ""
    phases = report.logs[0].phases_ms if report.logs else {}
    spent = ", ".join(f"{phase.replace('_', ' ')} {format_duration(ms)}" for phase, ms in phases.items())
    took = format_duration(report.duration_ms) + (f" ({spent})" if spent else "")
    return f"{report.topic}: {records}, {size}, version {report.version}{failed}, {took}{_judged(report)}"


def plan_table(plan: PlanReport) -> Table[LogPlanReport]:
    """What a round would change in the logs, and its cost."""
    gone = any(log.segments_gone for log in plan.logs)
    header = ("LOG", "CLEAN BELOW", "RECORDS", *(("GO WHOLE",) if gone else ()), *_PLAN_COSTS)
    return Table(header, plan.logs, partial(_plan_row, gone=gone), left=("HORIZON",))


_PLAN_COSTS = ("SEGMENTS", "READS", "WRITES", "HORIZON")


def _plan_row(log: LogPlanReport, *, gone: bool) -> tuple[str, ...]:
    return (
        str(log.partition),
        change(log.first_dirty_offset, log.horizon, count),
        count(log.records_in),
        *((count(log.segments_gone),) if gone else ()),
        f"{count(log.segments_rewritten_at_most)} of {count(log.segments_in)}",
        _at_most(log.bytes_read_at_most),
        _at_most(log.bytes_written_at_most),
        horizon_text(log.horizon_limited_by, None) + _plan_notes(log),
    )


def _plan_notes(log: LogPlanReport) -> str:
    held = f", tombstones held for {_groups(log.held_by)}" if log.held_by else ""
    return f"{held}{', nothing to do' if log.idle else ''}"


def horizon_text(limited_by: str, held_by: str | None) -> str:
    """What limits the horizon."""
    if limited_by == "log end":
        return "at the log end"
    return f"held by {limited_by}" + (f" in {held_by.rpartition('/')[2]}" if held_by else "")


def _at_most(size: int) -> str:
    return f"≤ {format_bytes(size)}" if size else "-"


def plan_summary(plan: PlanReport) -> str:
    """One line: the bounds of the whole run."""
    if all(log.idle for log in plan.logs):
        return f"{plan.topic}: a round would change nothing{_judged(plan)}"
    read = format_bytes(sum(log.bytes_read_at_most for log in plan.logs))
    extra = format_bytes(plan.extra_bytes_needed)
    return (
        f"{plan.topic}: a round would read at most {read} and write at most {extra}, which it needs free "
        f"besides the old version; nothing was changed{_judged(plan)}"
    )


def _judged(report: RoundReport | PlanReport) -> str:
    return f" (judged as of {format_time(report.now_ms)}, not of the clock)" if report.now_given else ""


def history_table(reports: Sequence[RoundReport]) -> Table[RoundReport]:
    """A round in each row."""
    header = ("ROUND AT", "VERSION", "LOGS", "RECORDS", "BYTES", "TIME", "REMOVED")
    return Table(header, reports, _round_row, left=("ROUND AT", "REMOVED"))


def _round_row(report: RoundReport) -> tuple[str, ...]:
    logs = report.logs

    def total(name: str) -> int:
        return sum(getattr(log, name) for log in logs)

    causes = {name: sum(getattr(log.losers, name) for log in logs) for name in Losers.__dataclass_fields__}
    return (
        format_time(report.now_ms)[:19] + ("*" if report.now_given else ""),
        count(report.version),
        count(len(logs)),
        f"{count(total('records_in'))} → {count(total('records_out'))}",
        f"{format_bytes(total('bytes_in'))} → {format_bytes(total('bytes_out'))}",
        format_duration(report.duration_ms),
        losers_text(Losers(**causes)),
    )


def space_needed(plan: PlanReport) -> str:
    """One line: the free space that the round may need, and until when; nothing if it needs none (C42)."""
    if not plan.extra_bytes_needed or plan.old_version_until_ms is None:
        return ""
    until = f"{format_time(plan.old_version_until_ms)[:19]}Z"
    return (
        f"{plan.topic}: needs up to {format_bytes(plan.extra_bytes_needed)} free, until the files that it replaces go, "
        f"at {until} at the earliest"
    )
