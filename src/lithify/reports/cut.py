"""What a commit other than an append or a round did to a topic: retain, truncate, undo and the like.

The field names are the JSON keys. Bytes are compressed sizes, times epoch ms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lithify.model.segment import Segment, volume_of
from lithify.model.settings.units import format_bytes
from lithify.model.topic.edit import Verb
from lithify.model.topic.log import LogState
from lithify.model.topic.state import TopicState
from lithify.reports.groups import unread_groups
from lithify.reports.page import Page, Table, aside
from lithify.reports.page.wording import change, count
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class LogCut:
    """One log, before and after. What was removed is what the log or its view no longer names."""

    partition: int
    log_start_offset: int
    log_start_offset_after: int
    first_dirty_offset: int
    first_dirty_offset_after: int
    log_end_offset: int
    log_end_offset_after: int
    segments_removed: int = 0
    records_removed: int = 0
    bytes_removed: int = 0
    segments_added: int = 0
    records_added: int = 0


@dataclass(frozen=True, slots=True)
class CutReport(Report):
    """What the verb did; logs that it did not change are not in it."""

    topic: str
    verb: Verb
    version: int
    changed: bool
    logs: tuple[LogCut, ...]
    now_ms: int
    now_given: bool = False
    undone_run_id: str | None = None
    """The `run_id` of the round that `undo` undid."""
    undone_round_ms: int | None = None
    """When that round was."""
    groups_error: str | None = None
    """Why `retain` could not read positions of groups: as if they had read nothing (C62)."""

    def page(self) -> Page:
        lines = [*unread_groups(self.groups_error), *([] if self.changed else [aside("nothing was changed")])]
        return Page(self.topic, f"{self.verb.value}, version {self.version}", _cut_table(self), lines)


def log_cut(before: LogState, after: LogState, removed: tuple[Segment, ...], added: tuple[Segment, ...] = ()) -> LogCut:
    """What became of one log."""
    return LogCut(
        partition=before.partition,
        log_start_offset=before.log_start_offset,
        log_start_offset_after=after.log_start_offset,
        first_dirty_offset=before.first_dirty_offset,
        first_dirty_offset_after=after.first_dirty_offset,
        log_end_offset=before.log_end_offset,
        log_end_offset_after=after.log_end_offset,
        segments_removed=len(removed),
        records_removed=volume_of(removed).records,
        bytes_removed=volume_of(removed).size_bytes,
        segments_added=len(added),
        records_added=volume_of(added).records,
    )


def cut_report(state: TopicState, verb: Verb, cuts: Sequence[LogCut], now_ms: int) -> CutReport:
    """What `verb` made of the logs in `cuts`, as of the version that it ended with."""
    return CutReport(str(state.name), verb, state.version, bool(cuts), tuple(cuts), now_ms)


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


def _cut_table(report: CutReport) -> Table[LogCut]:
    """The logs that changed."""
    chosen = _COLUMNS.get(report.verb, (_START, _CLEAN, _END))

    def row(log: LogCut) -> list[str]:
        return [str(log.partition), *(text(log) for _, text in chosen)]

    return Table(("PARTITION", *(name for name, _ in chosen)), report.logs, row)


def _signed(number: int) -> str:
    return f"{number:+,}" if number else "0"


def _both(added: int, removed: int) -> str:
    parts = [text for text, number in ((f"-{removed:,}", removed), (f"+{added:,}", added)) if number]
    return " ".join(parts) or "0"
