"""How a scenario shows logs, segments and reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from lithify.model.record import Record
from lithify.model.segment import Segment
from lithify.model.settings.units import format_duration
from lithify.model.topic.log import LogState
from lithify.reports.cut import CutReport
from lithify.reports.rounds.round import LogReport
from lithify.reports.status import GroupHold, LogStatus
from support.builders import draw


def segment_range(segment: Segment) -> str:
    return f"[{segment.base_offset},{segment.end_offset})"


def ranges(segments: Iterable[Segment]) -> str:
    ordered = sorted(segments, key=lambda s: (s.partition, s.base_offset))
    return " ".join(map(segment_range, ordered)) or "nothing"


def file_name(path: str) -> str:
    """A data file by its first offset and the run that wrote it."""
    offset, run, _ = path.rpartition("/")[2].split("-")
    return f"{int(offset)}-{run}"


def round_line(log: LogReport) -> str:
    """One log of a round."""
    if log.error is not None:
        return f"log {log.partition}: failed: {log.error}"
    losers = [f"{count} {cause}" for cause, count in asdict(log.losers).items() if count]
    held_by, missed_by = ", ".join(log.held_by), ", ".join(log.missed_by)
    start = f"S {log.log_start_offset} to {log.log_start_offset_after}, "
    return (
        f"log {log.partition}: {'' if log.log_start_offset == log.log_start_offset_after else start}"
        f"D {log.first_dirty_offset} to {log.first_dirty_offset_after}, "
        f"{log.records_in} records in, {log.records_out} out"
        f"{': ' if losers else ''}{', '.join(losers)}"
        f"{f'; {log.tombstones_held} tombstones held' if log.tombstones_held else ''}"
        f"{f'; {log.tombstones_unversioned} tombstones unversioned' if log.tombstones_unversioned else ''}"
        f"{f'; held by {held_by}' if held_by else ''}{f'; missed by {missed_by}' if missed_by else ''}"
        f"{'' if log.changed else '; nothing changed'}"
    )


def cut_lines(report: CutReport) -> Iterator[str]:
    """What a verb other than an append or a round did, log by log."""
    if not report.changed:
        yield "nothing changed"
    for log in report.logs:
        moved = [
            f"{name} {before} to {after}"
            for name, before, after in (
                ("S", log.log_start_offset, log.log_start_offset_after),
                ("D", log.first_dirty_offset, log.first_dirty_offset_after),
                ("E", log.log_end_offset, log.log_end_offset_after),
            )
            if before != after
        ]
        exchanged = f"{log.segments_removed} segments out, {log.segments_added} in"
        yield f"log {log.partition}: {', '.join([*moved, exchanged])}"


def log_lines(
    state: LogState, contents: Sequence[Sequence[Record]], view: Sequence[Sequence[Record]] | None
) -> Iterator[str]:
    """What is stored of a log and of its view, and what the metadata says."""
    yield f"log {state.partition}: {draw(contents) or '(no records)'}"
    if view is not None:
        yield f"  view: {draw(view) or '(no records)'}"
    steps = [f"{s.tombstones} below {s.end_offset} since {format_duration(s.time_ms)}" for s in state.steps]
    tombstones = f"; tombstones: {', '.join(steps)}" if state.tombstones else ""
    owed = f"; owed: {state.round_required}" if state.round_required else ""
    yield f"  S {state.log_start_offset}, D {state.first_dirty_offset}, E {state.log_end_offset}{tombstones}{owed}"


def status_lines(log: LogStatus) -> Iterator[str]:
    yield (
        f"log {log.partition}: {log.clean_bytes} bytes clean, {log.dirty_bytes} dirty, "
        f"ratio {log.dirty_ratio:.2f}, {log.tombstones} tombstones"
    )
    if log.retention_waiting_bytes:
        yield f"  {log.retention_waiting_bytes} bytes past retention wait for a round"
    if log.tombstones_held_below is not None:
        yield f"  expired tombstones below {log.tombstones_held_below} are held"
    for hold in log.holds:
        yield f"  {_hold(hold)}"
    when = "" if log.due_at_ms is None else f"; by the clock at {format_duration(log.due_at_ms)}"
    yield f"  {'due' if log.due else 'not due'}: {_plain(log.due_reason)}{when}"


def _hold(hold: GroupHold) -> str:
    """What a group holds, and until when at the latest."""
    place = "no position" if hold.position is None else f"position {hold.position}"
    missed = "" if hold.missed_below is None else f", has missed deletes below {hold.missed_below}"
    if hold.since_ms is None:
        return f"{hold.group}: {place}, holds nothing{missed}"
    until = "for ever" if hold.until_ms is None else f"until {format_duration(hold.until_ms)}"
    return (
        f"{hold.group}: {place}, holds {hold.tombstones} tombstones since {format_duration(hold.since_ms)}, "
        f"{until}{missed}"
    )


def _plain(reason: str) -> str:
    """Without the date, which would be one of 1970."""
    return reason.partition(", since 1970")[0]
