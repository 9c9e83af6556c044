"""What cuts and sweeps did, as tables: a row for each log, or for each file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lithify.model.settings.units import format_bytes, format_time, plural
from lithify.model.topic.edit import Verb
from lithify.reports.cut import CutReport, LogCut, SweepReport, SweptFile
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import change, count

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


def cut_table(report: CutReport) -> Table[LogCut]:
    """The logs that changed."""
    chosen = _COLUMNS.get(report.verb, (_START, _CLEAN, _END))

    def row(log: LogCut) -> list[str]:
        return [str(log.partition), *(text(log) for _, text in chosen)]

    return Table(("LOG", *(name for name, _ in chosen)), report.logs, row)


def _signed(number: int) -> str:
    return f"{number:+,}" if number else "0"


def _both(added: int, removed: int) -> str:
    parts = [text for text, number in ((f"-{removed:,}", removed), (f"+{added:,}", added)) if number]
    return " ".join(parts) or "0"


def sweep_table(report: SweepReport, location: str = "") -> Table[SweptFile]:
    """The files, as seen from the folder of the topic."""
    header = ("SIZE", "WHY", "SINCE", "FILE")
    return Table(header, report.files, lambda file: _file_row(file, location), left=header[1:], wrap=False)


def _file_row(file: SweptFile, location: str) -> tuple[str, ...]:
    why = "never named" if file.named_until_ms is None else "replaced"
    since = file.modified_ms if file.named_until_ms is None else file.named_until_ms
    return format_bytes(file.size_bytes), why, format_time(since)[:19], _within(file.path, location)


def _within(path: str, location: str) -> str:
    """The path as seen from the folder of the topic."""
    return path.removeprefix(location).removeprefix(location.removeprefix("file://")).lstrip("/")


def sweep_summary(report: SweepReport) -> str:
    """One line: what can go, or went, and what is stored."""
    stored = (
        f"stored {format_bytes(report.stored_bytes)} of data files, {format_bytes(report.metadata_bytes)} of metadata"
    )
    return f"{report.topic}: {_expired(report)}{_going(report)}; {stored}{_waiting(report)}"


def _expired(report: SweepReport) -> str:
    count = len(report.expired_versions)
    if not count:
        return ""
    versions = f"{plural(count, 'version')} past versions.retention.ms"
    if report.deleted:
        return f"{versions} expired; "
    return f"{versions}, which --yes expires with the files that only {'it names' if count == 1 else 'they name'}; "


def _waiting(report: SweepReport) -> str:
    if not report.waiting_files:
        return ""
    files = f"{plural(report.waiting_files, 'file')} of {format_bytes(report.waiting_bytes)}"
    return f"; {files} that no version names stay until versions.retention.ms or sweep.grace.ms has passed"


def _going(report: SweepReport) -> str:
    if not report.files:
        return "no file can be deleted"
    files = f"{plural(len(report.files), 'file')} of {format_bytes(report.size_bytes)}"
    if report.deleted:
        return f"{files} deleted"
    return f"{files} can be deleted; --yes deletes {'it' if len(report.files) == 1 else 'them'}"
