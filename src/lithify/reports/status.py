"""The logs of a topic: what `lithify status TOPIC` prints.

Bytes are compressed sizes, times epoch ms. The offsets of a log are drawn on a line:

    S 0 ── clean, deletes removed ── R 80 ── clean ── D 120 ── dirty ── H 180 ── too young ── E 200

S is the log start, D the first dirty offset, H the horizon and E the log end, as in docs/guarantees.md; R is
the delete retention point, below which deletes may be gone (C49).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise

from lithify.model.failure import number_of_times
from lithify.model.settings.units import format_bytes, format_duration, format_time, plural
from lithify.reports.groups import unread_groups
from lithify.reports.page import Page, Table, aside
from lithify.reports.page.wording import coded, count, when
from lithify.reports.report import Report
from lithify.reports.rounds.plan import horizon_text
from lithify.reports.topic_space import Space, space_line


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """The compacted view of a log, up to its first dirty offset (C33)."""

    records: int
    bytes: int
    first_offset: int | None
    """Null while it has no records."""
    start_offset: int
    """Where a reader of compacted data starts (C37)."""


@dataclass(frozen=True, slots=True)
class GroupHold:
    """A group of `tombstone.hold.groups` and one log (C61)."""

    group: str
    position: int | None
    """The offset below which it has read everything; null without a position that counts: it has read nothing."""
    committed_ms: int | None
    tombstones: int
    """How many it holds at most, which would have expired by `delete.retention.ms`."""
    since_ms: int | None
    """When the first of them would have; null if it holds none."""
    until_ms: int | None
    """When the first of them is removed although the group has not read it; null if it holds none, or for ever."""
    missed_below: int | None
    """Deletes that it has not read are gone, by `tombstone.hold.max.ms`: below this offset. Null if none are."""


@dataclass(frozen=True, slots=True)
class LogStatus:
    """One log. Offsets as in `model.topic.log`; bytes compressed; times epoch ms.

    Side by side, records, bytes and segments belong to the backlog, `clean_bytes` to the view.
    """

    partition: int
    log_start_offset: int
    first_dirty_offset: int
    horizon: int
    horizon_limited_by: str
    horizon_held_by: str | None
    log_end_offset: int
    records: int
    bytes: int
    segments: int
    clean_bytes: int
    dirty_bytes: int
    dirty_ratio: float
    tombstones: int
    """Null values: those that a round has covered and left, at most, and those in the dirty part."""
    delete_retention_point: int
    """Deletes below this offset may be gone: a consumer that has not read them in time has to start again (C49)."""
    next_tombstone_expiry_ms: int | None
    tombstones_held_below: int | None
    """Expired tombstones below this offset remain: records that they beat wait above the horizon (C20), or there are
    chunks of their keys (C53)."""
    holds: tuple[GroupHold, ...]
    """What each group of `tombstone.hold.groups` holds (C61)."""
    backlog_read_below: int | None
    """All groups of `backlog.trim.groups` have read what is below; null if none is named (C62)."""
    passed_through: int
    """Whole entries of Pulsar that may hide a value of any key: while there are any, no tombstone expires (C53)."""
    chunks: int
    """Chunks of large messages among what is compacted: each holds the tombstones of its key (C53)."""
    retention_waiting_bytes: int
    """Bytes of the backlog that are past retention and wait for a round, which the view needs first (C33)."""
    owed: str | None
    """Why a round is required at any dirty ratio: a setting changed (C43), records were deleted (C26)."""
    due: bool
    due_reason: str
    due_at_ms: int | None
    """When the clock alone makes it due; in the past if it has."""
    overdue_ms: int
    """How far it is past `max.compaction.lag.ms` (C29)."""
    last_round_ms: int | None
    last_round_id: str | None
    """The `run_id` of the last round that was committed and not undone."""
    view: ViewStatus | None
    """Null in place, and side by side before the first round."""
    failures: int = 0
    """Rounds that failed in a row, since the last successful one (C31)."""
    failed_ms: int | None = None
    """When the last of them failed."""
    retry_ms: int | None = None
    """Cleaners do not retry it before this time; null if nothing failed, or if it is quarantined."""
    error: str | None = None
    """Why the last one failed."""
    error_code: str | None = None
    quarantined: bool = False
    """Whether cleaners skip it until it is released; since `failed_ms`."""
    masked_records: int = 0
    """Dead records that masks hide in `segments`: their files still have them."""


@dataclass(frozen=True, slots=True)
class TopicStatus(Report):
    """All logs of a topic at one version."""

    topic: str
    version: int
    cleanup_policy: str
    compaction_mode: str
    logs: tuple[LogStatus, ...]
    now_ms: int
    now_given: bool = False
    groups_error: str | None = None
    """Why positions of groups could not be read: as if they had read nothing (C61, C62)."""
    space: Space | None = None
    """What the whole topic takes, with earlier versions."""

    def page(self) -> Page:
        as_of = f", as of {format_time(self.now_ms)}" if self.now_given else ""
        stored = space_line(self.space)
        lines = [*unread_groups(self.groups_error), *([aside(stored)] if stored else [])]
        return Page(self.topic, f"version {self.version}{as_of}", _status_table(self), lines)


def _status_table(status: TopicStatus) -> Table[LogStatus]:
    """Its logs; below each, notes on its figures."""
    shown = {name: text for name, text in _COLUMNS.items() if _applies(name, status)}

    def row(log: LogStatus) -> list[str]:
        return [text(log) for text in shown.values()]

    def notes(log: LogStatus) -> list[str]:
        failing = _failure_notes(status.topic, log, status.now_ms)
        log_notes = _round_notes(log, status.now_ms) if _compacts(status) else [_due_note(log, status.now_ms)]
        holds = [note for hold in log.holds for note in _hold_notes(hold, status.now_ms)] if _compacts(status) else []
        return ["; ".join([*failing, *log_notes]), *holds]

    return Table(tuple(shown), status.logs, row, notes=notes, drawing=scale if _compacts(status) else lambda _log: "")


_COLUMNS: Mapping[str, Callable[[LogStatus], str]] = {
    "PARTITION": lambda log: str(log.partition),
    "START": lambda log: count(log.log_start_offset),
    "CLEAN BELOW": lambda log: count(log.first_dirty_offset),
    "HORIZON": lambda log: count(log.horizon),
    "END": lambda log: count(log.log_end_offset),
    "RECORDS": lambda log: count(log.records),
    "SIZE": lambda log: format_bytes(log.bytes),
    "DIRTY": lambda log: f"{log.dirty_ratio:.2f}",
}


def _applies(column: str, status: TopicStatus) -> bool:
    """Whether a column means something for the topic."""
    return column not in ("CLEAN BELOW", "HORIZON", "DIRTY") or _compacts(status)


def _compacts(status: TopicStatus) -> bool:
    return "compact" in status.cleanup_policy


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
    """Notes: due or not and why, what limits the horizon, tombstones, compacted view, last round."""
    notes = [_due_note(log, now_ms)]
    if log.owed is not None and log.owed != log.due_reason:
        notes.append(f"a round is required: {log.owed}")
    if log.retention_waiting_bytes:
        notes.append(
            f"{format_bytes(log.retention_waiting_bytes)} past retention remain until a round has copied them to the "
            "compacted view"
        )
    notes.append(f"horizon {horizon_text(log.horizon_limited_by, log.horizon_held_by)}")
    if log.tombstones:
        notes.append(plural(log.tombstones, "tombstone") + _tombstones_go(log, now_ms))
    if log.delete_retention_point > log.log_start_offset:
        notes.append(f"deletes below {count(log.delete_retention_point)} may have been removed")
    if log.view is not None:
        view = f"{plural(log.view.records, 'record')}, {format_bytes(log.view.bytes)}"
        notes.append(f"compacted view: {view}, read from {count(log.view.start_offset)}")
    if log.last_round_ms is None:
        notes.append("no round yet")
    else:
        run = f", run {log.last_round_id}" if log.last_round_id else ""
        notes.append(f"last round {when(log.last_round_ms, now_ms)}{run}")
    return notes


def _hold_notes(hold: GroupHold, now_ms: int) -> list[str]:
    """What a group holds or has missed (C61)."""
    place = "which has no committed position here" if hold.position is None else f"which is at {count(hold.position)}"
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
    """When the next tombstones may be removed, and which cannot (C20, C53)."""
    if log.passed_through:
        return f", which remain: entries passed through whole may hide what they delete ({count(log.passed_through)})"
    expiry, held = log.next_tombstone_expiry_ms, log.tombstones_held_below
    goes = "" if expiry is None else f", the next expires {when(expiry, now_ms)}"
    if held is None:
        return goes
    why = f"chunks have their keys ({count(log.chunks)} in all), or " if log.chunks else ""
    return f"{goes}, expired ones below {count(held)} remain while {why}records that they beat are above the horizon"


def scale(log: LogStatus) -> str:
    """The line of a log; nothing where its parts are no more than one, as the figures of its row say all then."""
    points = [
        ("S", log.log_start_offset),
        *([("R", log.delete_retention_point)] if log.delete_retention_point > log.log_start_offset else []),
        ("D", log.first_dirty_offset),
        ("H", log.horizon),
        ("E", log.log_end_offset),
    ]
    places = [(at, "=".join(name for name, _ in same)) for at, same in groupby(sorted(points, key=_at), key=_at)]
    if len(places) < 3:
        return ""
    parts = [f"{places[0][1]} {count(places[0][0])}"]
    for (start, _), (end, names) in pairwise(places):
        parts.append(f" ── {_part(log, start, end)} ── {names} {count(end)}")
    return "".join(parts)


def _at(point: tuple[str, int]) -> int:
    return point[1]


def _part(log: LogStatus, start: int, end: int) -> str:
    """What the records from `start` to `end` are; no point of the log is between them."""
    if end <= log.first_dirty_offset:
        return "clean, deletes removed" if end <= log.delete_retention_point else "clean"
    return "dirty" if end <= log.horizon else "too young"
