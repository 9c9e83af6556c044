"""The result of a cut as text: a line per log, and a summary."""

from __future__ import annotations

from lithify.cli.invocation import Invocation
from lithify.cli.terminal.output import drawn, say, show
from lithify.model.settings.units import format_time, plural
from lithify.reports.cut import CutReport
from lithify.reports.tables.cuts import cut_table
from lithify.reports.tables.rounds import unread_groups


def print_cut(invocation: Invocation, report: CutReport, done: str, idle: str) -> None:
    """Prints the report of a cut. `done` is its summary, `idle` the reason if there was nothing to do."""
    if invocation.printed(report):
        return
    if report.groups_error is not None:
        say(unread_groups(report.groups_error))
    if not report.changed:
        say(f"{report.topic}: {idle}, version {report.version} stays{judged(report)}")
        return
    show(drawn(cut_table(report)))
    say(f"{report.topic}: {done}, version {report.version}{judged(report)}")


def judged(report: CutReport) -> str:
    return f" (judged as of {format_time(report.now_ms)}, not of the clock)" if report.now_given else ""


def removed_records(report: CutReport) -> str:
    """`12 records in 2 segments`: the removed records; a rewritten segment is not counted."""
    records = sum(log.records_removed - log.records_added for log in report.logs)
    segments = sum(log.segments_removed for log in report.logs)
    return f"{plural(records, 'record')} in {plural(segments, 'segment')}"
