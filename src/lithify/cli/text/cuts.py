"""The result of a cut as text: a line per log, and a summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lithify.cli.invocation import Invocation
from lithify.cli.terminal.output import change, columns, count, plural, say, show
from lithify.cli.text.rounds import unread_groups
from lithify.model.settings.units import format_bytes, format_time
from lithify.model.topic.edit import Verb
from lithify.reports.cut import CutReport, LogCut

_Column = tuple[str, Callable[[LogCut], str]]

_START: _Column = ("START", lambda log: change(log.log_start_offset, log.log_start_offset_after, count))
_CLEAN: _Column = ("CLEAN BELOW", lambda log: change(log.first_dirty_offset, log.first_dirty_offset_after, count))
_END: _Column = ("END", lambda log: change(log.log_end_offset, log.log_end_offset_after, count))
_SEGMENTS: _Column = ("SEGMENTS", lambda log: _both(log.segments_added, log.segments_removed))
_RECORDS: _Column = ("RECORDS", lambda log: _signed(log.records_added - log.records_removed))
_BYTES: _Column = ("BYTES", lambda log: f"-{format_bytes(log.bytes_removed)}")
_VIEW_RECORDS: _Column = ("VIEW RECORDS", lambda log: _signed(-log.records_removed))

_COLUMNS: Mapping[Verb, tuple[_Column, ...]] = {
    Verb.RETAIN: (_START, _SEGMENTS, _RECORDS, _BYTES),
    Verb.DELETE_RECORDS: (_START, _CLEAN),
    Verb.TRUNCATE: (_END, _CLEAN, _SEGMENTS, _RECORDS),
    Verb.UNCOMPACT: (_CLEAN, _VIEW_RECORDS),
    Verb.UNDO: (_START, _CLEAN, _SEGMENTS, _RECORDS),
}


def print_cut(invocation: Invocation, report: CutReport, done: str, idle: str) -> None:
    """Prints the report of a cut. `done` is its summary, `idle` the reason if there was nothing to do."""
    if invocation.printed(report):
        return
    if report.groups_error is not None:
        say(unread_groups(report.groups_error))
    if not report.changed:
        say(f"{report.topic}: {idle}, version {report.version} stays{judged(report)}")
        return
    show(cut_lines(report))
    say(f"{report.topic}: {done}, version {report.version}{judged(report)}")


def cut_lines(report: CutReport) -> list[str]:
    """A table of the logs that changed."""
    chosen = _COLUMNS[report.verb]
    header = ("LOG", *(name for name, _ in chosen))
    return columns(header, ([str(log.partition), *(text(log) for _, text in chosen)] for log in report.logs))


def judged(report: CutReport) -> str:
    return f" (judged as of {format_time(report.now_ms)}, not of the clock)" if report.now_given else ""


def removed_records(report: CutReport) -> str:
    """`12 records in 2 segments`: the removed records; a rewritten segment is not counted."""
    records = sum(log.records_removed - log.records_added for log in report.logs)
    segments = sum(log.segments_removed for log in report.logs)
    return f"{plural(records, 'record')} in {plural(segments, 'segment')}"


def _signed(number: int) -> str:
    return f"{number:+,}" if number else "0"


def _both(added: int, removed: int) -> str:
    parts = [text for text, number in ((f"-{removed:,}", removed), (f"+{added:,}", added)) if number]
    return " ".join(parts) or "0"
