"""The state of every log of a topic as a table, with notes on each, and its offsets on a line.

    S 0 ── clean, deletes gone ── R 80 ── clean ── D 120 ── dirty ── H 180 ── too young ── E 200

S is the log start, D the first dirty offset, H the horizon and E the log end, as in docs/guarantees.md; R is the delete
retention point, below which deletes may be gone (C49).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby, pairwise

from lithify.model.failure import number_of_times
from lithify.model.settings.units import format_bytes, format_duration, format_time, plural
from lithify.reports.status import GroupHold, LogStatus, TopicStatus
from lithify.reports.tables.rounds import horizon_text
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import coded, count, when


def status_title(found: TopicStatus) -> str:
    """`version 12`, and as of when."""
    as_of = f", as of {format_time(found.now_ms)}" if found.now_given else ""
    return f"version {found.version}{as_of}"


def status_table(found: TopicStatus) -> Table[LogStatus]:
    """Its logs; below each, notes on its figures."""
    shown = {name: text for name, text in _COLUMNS.items() if _applies(name, found)}

    def row(log: LogStatus) -> list[str]:
        return [text(log) for text in shown.values()]

    def notes(log: LogStatus) -> list[str]:
        failing = _failure_notes(found.topic, log, found.now_ms)
        said = _round_notes(log, found.now_ms) if _compacts(found) else [_due_note(log, found.now_ms)]
        holds = [note for hold in log.holds for note in _hold_notes(hold, found.now_ms)] if _compacts(found) else []
        return ["; ".join([*failing, *said]), *holds]

    return Table(tuple(shown), found.logs, row, notes=notes, drawing=scale if _compacts(found) else lambda _log: "")


_COLUMNS: Mapping[str, Callable[[LogStatus], str]] = {
    "LOG": lambda log: str(log.partition),
    "START": lambda log: count(log.log_start_offset),
    "CLEAN BELOW": lambda log: count(log.first_dirty_offset),
    "HORIZON": lambda log: count(log.horizon),
    "END": lambda log: count(log.log_end_offset),
    "RECORDS": lambda log: count(log.records),
    "SIZE": lambda log: format_bytes(log.bytes),
    "VIEW": lambda log: "-" if log.view is None else count(log.view.records),
    "VIEW SIZE": lambda log: "-" if log.view is None else format_bytes(log.view.bytes),
    "DIRTY": lambda log: f"{log.dirty_ratio:.2f}",
}


def _applies(column: str, found: TopicStatus) -> bool:
    """Whether a column means something for the topic."""
    if column in ("CLEAN BELOW", "HORIZON", "DIRTY"):
        return _compacts(found)
    return found.compaction_mode == "side-by-side" or not column.startswith("VIEW")


def _compacts(found: TopicStatus) -> bool:
    return "compact" in found.cleanup_policy


def _failure_notes(topic: str, log: LogStatus, now_ms: int) -> list[str]:
    """The first notes of a failing log: its error, and the verb that releases it (C31)."""
    if log.failed_ms is None:
        return []
    if log.quarantined:
        release = f"`lithify quarantine release {topic} --partition {log.partition}` releases it"
        after = f"after {plural(log.failures, 'failure')}: {coded(str(log.error), log.error_code)}"
        return [f"QUARANTINED since {when(log.failed_ms, now_ms)} {after}", release]
    # A failure with the time of a clock that was ahead delays no retry.
    waits = log.retry_ms is not None and log.failed_ms <= now_ms < log.retry_ms
    tried = when(log.retry_ms or 0, now_ms) if waits else "now"
    return [f"FAILED {number_of_times(log.failures)}, next try {tried}: {coded(str(log.error), log.error_code)}"]


def _due_note(log: LogStatus, now_ms: int) -> str:
    note = f"{'DUE' if log.due else 'not due'}: {log.due_reason}"
    if log.overdue_ms:
        note += f", {format_duration(log.overdue_ms)} overdue"
    if log.due_at_ms is not None and not log.due:
        note += f"; due by the clock {when(log.due_at_ms, now_ms)}"
    return note


def _round_notes(log: LogStatus, now_ms: int) -> list[str]:
    """Notes: due or not and why, what limits the horizon, tombstones, view, last round."""
    notes = [_due_note(log, now_ms)]
    if log.owed is not None and log.owed != log.due_reason:
        notes.append(f"a round is required: {log.owed}")
    if log.retention_waiting_bytes:
        notes.append(f"{format_bytes(log.retention_waiting_bytes)} past retention wait until the view has them")
    notes.append(f"horizon {horizon_text(log.horizon_limited_by, log.horizon_held_by)}")
    if log.tombstones:
        notes.append(plural(log.tombstones, "tombstone") + _tombstones_go(log, now_ms))
    if log.delete_retention_point > log.log_start_offset:
        notes.append(f"deletes below {count(log.delete_retention_point)} may be gone")
    if log.view is not None:
        notes.append(f"compacted reads start at {count(log.view.start_offset)}")
    if log.last_round_ms is None:
        notes.append("no round yet")
    else:
        run = f", run {log.last_round_id}" if log.last_round_id else ""
        notes.append(f"last round {when(log.last_round_ms, now_ms)}{run}")
    return notes


def _hold_notes(hold: GroupHold, now_ms: int) -> list[str]:
    """What a group holds or has missed (C61)."""
    place = "which has no position here" if hold.position is None else f"which is at {count(hold.position)}"
    notes = []
    if hold.since_ms is not None:
        until = "" if hold.until_ms is None else f", until {when(hold.until_ms, now_ms)} at the latest"
        are = "is" if hold.tombstones == 1 else "are"
        held = f"{plural(hold.tombstones, 'tombstone')} at most {are} held by group {hold.group}, {place}"
        notes.append(f"{held}, since {when(hold.since_ms, now_ms)}{until}")
    if hold.missed_below is not None:
        notes.append(f"group {hold.group}, {place}, has MISSED deletes below {count(hold.missed_below)}")
    return notes


def _tombstones_go(log: LogStatus, now_ms: int) -> str:
    """When the next tombstones may go, and which cannot (C20, C53)."""
    if log.passed_through:
        return f", which stay: entries passed through whole may hide what they delete ({count(log.passed_through)})"
    expiry, held = log.next_tombstone_expiry_ms, log.tombstones_held_below
    goes = "" if expiry is None else f", the next expires {when(expiry, now_ms)}"
    if held is None:
        return goes
    return f"{goes}, expired ones below {count(held)} stay while records that they beat wait above the horizon"


def scale(log: LogStatus) -> str:
    """The line of a log; nothing where its parts are no more than one, as the figures of its row say all then."""
    points = [
        ("S", log.log_start_offset),
        *([("R", log.delete_retention_point)] if log.delete_retention_point > log.log_start_offset else []),
        ("D", log.first_dirty_offset),
        ("H", log.horizon),
        ("E", log.log_end_offset),
    ]
    found = [(at, "=".join(name for name, _ in same)) for at, same in groupby(sorted(points, key=_at), key=_at)]
    if len(found) < 3:
        return ""
    parts = [f"{found[0][1]} {count(found[0][0])}"]
    for (start, _), (end, names) in pairwise(found):
        parts.append(f" ── {_part(log, start, end)} ── {names} {count(end)}")
    return "".join(parts)


def _at(point: tuple[str, int]) -> int:
    return point[1]


def _part(log: LogStatus, start: int, end: int) -> str:
    """What the records from `start` to `end` are; no point of the log is between them."""
    if end <= log.first_dirty_offset:
        return "clean, deletes gone" if end <= log.delete_retention_point else "clean"
    return "dirty" if end <= log.horizon else "too young"
