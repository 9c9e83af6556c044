"""Reports: what a round did, in numbers that scripts rely on (C42, and the CLI's JSON).

The field names are the JSON keys. Bytes are compressed sizes, durations milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial

from lithify.errors import RoundsFailedError
from lithify.model.settings.units import format_bytes, format_duration, format_second, plural
from lithify.reports.groups import named_groups, unread_groups
from lithify.reports.page import Page, Table, aside, notice
from lithify.reports.page.wording import as_judged, change, change_of, count
from lithify.reports.report import Report
from lithify.reports.topic_space import Space, space_line


@dataclass(frozen=True, slots=True)
class Losers:
    """Records that a round removed, by cause."""

    superseded: int = 0
    expired_tombstone: int = 0
    no_key: int = 0
    past_retention: int = 0
    below_start: int = 0

    @property
    def total(self) -> int:
        return sum(getattr(self, cause) for cause in CAUSES)


CAUSES = tuple(f.name for f in fields(Losers))


@dataclass(frozen=True, slots=True)
class LogReport:
    """One log's part of a round. With an `error`, the log is as it was before.

    If several rounds rewrote it in parts, it is `changed` by those before the one with the `error`.
    """

    partition: int
    first_dirty_offset: int
    first_dirty_offset_after: int
    horizon: int
    horizon_limited_by: str
    log_start_offset: int = 0
    log_start_offset_after: int = 0
    log_end_offset: int = 0
    deleted_below: int = 0
    """Where the last `delete-records` before the round had cut (C26)."""
    records_in: int = 0
    records_out: int = 0
    keys: int = 0
    tombstones_in: int = 0
    tombstones_out: int = 0
    tombstones_held: int = 0
    """Expired tombstones that remain: records that they beat are above the horizon (C20), or chunks have their keys
    (C53)."""
    tombstones_unversioned: int = 0
    """Losing tombstones without the header of `compaction.strategy.header` (C11)."""
    losers: Losers = Losers()
    segments_in: int = 0
    segments_kept: int = 0
    segments_rewritten: int = 0
    segments_merged: int = 0
    segments_masked: int = 0
    """Segments that remain, with a mask that hides their dead records."""
    segments_waiting: int = 0
    """Segments of which a mask hides too much, and that the next round rewrites."""
    segments_written: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    tombstones_expire_below: int = 0
    tombstones_read_below: int | None = None
    """All groups of `tombstone.hold.groups` had read those below; null if none is named (C61)."""
    held_by: tuple[str, ...] = ()
    """The groups that hold tombstones which would have expired."""
    missed_by: tuple[str, ...] = ()
    """The groups that had not read all tombstones that the round dropped, after `tombstone.hold.max.ms`."""
    backlog_read_below: int | None = None
    """All groups of `backlog.trim.groups` had read what is below; null if none is named (C62)."""
    values_expire_before_ms: int | None = None
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    changed: bool = False
    error: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class RoundReport(Report):
    """A run of `compact` over one topic: one entry per log that was asked for."""

    topic: str
    version: int
    """The version that the run committed, or the newest one if it changed nothing."""
    changed: bool
    logs: tuple[LogReport, ...]
    duration_ms: int
    now_ms: int
    now_given: bool = False
    """Whether `now_ms` was given with `--now` instead of taken from the clock."""
    run_id: str = ""
    groups_error: str | None = None
    """Why positions of groups could not be read: as if they had read nothing (C61, C62)."""
    space: Space | None = None
    """What the topic takes after the round; null in stored reports, and where it could not be read then."""

    @property
    def failed(self) -> tuple[LogReport, ...]:
        return tuple(log for log in self.logs if log.error is not None)

    def unless_all_failed(self) -> RoundReport:
        """This report. Raises `RoundsFailedError`, which has it, if every log failed."""
        failed = self.failed
        if not failed or len(failed) < len(self.logs):
            return self
        others = f"; all {len(failed)} logs failed: see the report of this error" if len(failed) > 1 else ""
        unchanged = "the log is unchanged" if len(failed) == 1 else "the logs are unchanged"
        hint = "`lithify history` lists what was committed before" if self.changed else unchanged
        error = RoundsFailedError(f"{failed[0].error}{others}", hint=hint)
        error.report = self
        raise error

    def page(self) -> Page:
        lines = [
            *unread_groups(self.groups_error),
            notice(_round_summary(self)),
            *(aside(f"partition {log.partition}: {log.error}") for log in self.failed),
            *([aside(stored)] if (stored := space_line(self.space)) else []),
        ]
        return Page(self.topic, "round", _round_table(self), lines)

    @classmethod
    def listed(cls, reports: Sequence[RoundReport]) -> Page:
        header = ("ROUND AT", "VERSION", "PARTITIONS", "RECORDS", "BYTES", "TIME", "REMOVED")
        return Page("rounds, newest first", table=Table(header, reports, _round_row, left=("ROUND AT", "REMOVED")))


_CAUSES = {
    "superseded": ("superseded", "superseded"),
    "expired_tombstone": ("expired tombstone", "expired tombstones"),
    "no_key": ("without a key", "without a key"),
    "past_retention": ("past retention", "past retention"),
    "below_start": ("below the log start", "below the log start"),
}
"""Causes as text, for one record and for several."""


def _losers_text(losers: Losers) -> str:
    """`790 superseded, 10 expired tombstones`."""
    counted = [(getattr(losers, name), texts) for name, texts in _CAUSES.items()]
    return ", ".join(f"{count(number)} {texts[number > 1]}" for number, texts in counted if number) or "nothing"


def _round_table(report: RoundReport) -> Table[LogReport]:
    """What became of the logs."""
    moved = any(log.log_start_offset != log.log_start_offset_after for log in report.logs)
    header = ("PARTITION", *(("START",) if moved else ()), "CLEAN BELOW", "RECORDS", "BYTES", "REMOVED")
    return Table(header, report.logs, partial(_log_row, moved=moved), left=("REMOVED",))


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
        return "FAILED before everything was rewritten" if log.changed else "FAILED, the log is unchanged"
    notes = [_losers_text(log.losers) if log.changed else "nothing to do"]
    if log.tombstones_held:
        notes.append(
            f"{plural(log.tombstones_held, 'expired tombstone')} held by records above the horizon or by chunks"
        )
    if log.held_by:
        notes.append(f"tombstones held for {named_groups(log.held_by)}")
    if log.missed_by:
        notes.append(f"tombstones were removed that {named_groups(log.missed_by)} had not read")
    if log.tombstones_unversioned:
        notes.append(f"{plural(log.tombstones_unversioned, 'tombstone')} without an order superseded")
    if log.segments_waiting:
        notes.append(f"{plural(log.segments_waiting, 'segment')} to rewrite next")
    held = "" if log.horizon_limited_by == "log end" else f" (horizon held by {log.horizon_limited_by})"
    return "; ".join(notes) + held


def _round_summary(report: RoundReport) -> str:
    """One line: records and bytes before and after, and the time of each phase."""
    as_of = as_judged(report.now_ms, given=report.now_given)
    if not report.changed and not report.failed:
        return f"{report.topic}: nothing to do, still version {report.version}{as_of}"
    logs = report.logs  # failed ones too, which have what they had
    records = change_of(sum(log.records_in for log in logs), sum(log.records_out for log in logs), "record")
    size = change(sum(log.bytes_in for log in logs), sum(log.bytes_out for log in logs), format_bytes)
    failed = f", {plural(len(report.failed), 'log')} FAILED" if report.failed else ""
    phases = report.logs[0].phases_ms if report.logs else {}
    spent = ", ".join(f"{phase.replace('_', ' ')} {format_duration(ms)}" for phase, ms in phases.items())
    took = format_duration(report.duration_ms) + (f" ({spent})" if spent else "")
    return f"{report.topic}: {records}, {size}, version {report.version}{failed}, {took}{as_of}"


def _round_row(report: RoundReport) -> tuple[str, ...]:
    logs = report.logs

    def total(name: str) -> int:
        return sum(getattr(log, name) for log in logs)

    causes = {name: sum(getattr(log.losers, name) for log in logs) for name in Losers.__dataclass_fields__}
    return (
        format_second(report.now_ms) + ("*" if report.now_given else ""),
        count(report.version),
        count(len(logs)),
        f"{count(total('records_in'))} → {count(total('records_out'))}",
        f"{format_bytes(total('bytes_in'))} → {format_bytes(total('bytes_out'))}",
        format_duration(report.duration_ms),
        _losers_text(Losers(**causes)),
    )
