"""What `pulsar compact` reports. The field names are the JSON keys; bytes count entries as brokers have them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lithify.model.settings.units import format_bytes, format_duration, plural
from lithify.reports.page import Page, Table, aside, notice
from lithify.reports.page.wording import at_most, change, change_of, coded, count
from lithify.reports.report import Report


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """An entry of a partition."""

    ledger: int
    entry: int


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """One partition's part of a round. With an `error`, readers get what they got before.

    `compacted_ledger` and `horizon` are those in force afterwards, as far as they are known. A topic without
    partitions is partition 0.
    """

    partition: int
    compacted_ledger: int | None = None
    horizon: EntryPlace | None = None
    messages_in: int = 0
    messages_out: int = 0
    entries_in: int = 0
    entries_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    ledgers_deleted: tuple[int, ...] = ()
    """Ledgers of views that earlier rounds left behind and no broker reads."""
    changed: bool = False
    error: str | None = None
    error_code: str | None = None
    damaged_entries: int = 0
    """Batches that their producers wrote damaged, which the view has whole (C74)."""
    damaged_named: tuple[str, ...] = ()
    """The first of them, as LEDGER:ENTRY."""


@dataclass(frozen=True, slots=True)
class TopicRoundReport(Report):
    """A round of all partitions of a topic."""

    topic: str
    partitions: tuple[PartitionReport, ...]
    duration_ms: int
    run_id: str
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        return any(one.changed for one in self.partitions)

    @property
    def failed(self) -> tuple[PartitionReport, ...]:
        return tuple(one for one in self.partitions if one.error is not None)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "changed": self.changed}

    def page(self) -> Page:
        lines = [notice(_round_summary(self)), *map(aside, self.notes)]
        return Page(self.topic, "round", _round_table(self), lines)


@dataclass(frozen=True, slots=True)
class DroppedView:
    """What became of the view of one partition."""

    partition: int
    changed: bool
    error: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class UncompactReport(Report):
    """What `pulsar uncompact` dropped."""

    topic: str
    partitions: tuple[DroppedView, ...]
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[DroppedView, ...]:
        return tuple(one for one in self.partitions if one.error is not None)


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What a round would do to a partition now. Entries and bytes are upper bounds; with an `error`, it would fail."""

    partition: int
    compacted_ledger: int | None = None
    horizon: EntryPlace | None = None
    horizon_after: EntryPlace | None = None
    view_entries: int = 0
    new_entries: int = 0
    bytes_read_at_most: int = 0
    bytes_written_at_most: int = 0
    idle: bool = False
    error: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class TopicRoundPlan(Report):
    """What `pulsar compact` would do now. Nothing was changed."""

    topic: str
    partitions: tuple[PartitionPlan, ...]
    notes: tuple[str, ...] = ()

    def page(self) -> Page:
        return Page(self.topic, "plan of a round", _plan_table(self), [*map(aside, self.notes)])


def _round_table(report: TopicRoundReport) -> Table[PartitionReport]:
    """What became of the partitions."""
    header = ("PARTITION", "LEDGER", "UP TO", "MESSAGES", "ENTRIES", "BYTES", "RESULT")
    return Table(header, report.partitions, _row, left=("RESULT",))


def _row(one: PartitionReport) -> tuple[str, ...]:
    return (
        str(one.partition),
        "-" if one.compacted_ledger is None else str(one.compacted_ledger),
        _place(one.horizon),
        change(one.messages_in, one.messages_out, count),
        change(one.entries_in, one.entries_out, count),
        change(one.bytes_in, one.bytes_out, format_bytes),
        _result(one),
    )


def _result(one: PartitionReport) -> str:
    if one.error is not None:
        return "FAILED, readers get the same as before"
    deleted = f"; deleted {plural(len(one.ledgers_deleted), 'ledger')} of killed rounds" if one.ledgers_deleted else ""
    return ("published" if one.changed else "nothing new") + deleted


def _round_summary(report: TopicRoundReport) -> str:
    """One line: messages and bytes before and after, and the time."""
    took = format_duration(report.duration_ms)
    failed = f", {plural(len(report.failed), 'partition')} FAILED" if report.failed else ""
    if not report.changed:
        return f"{report.topic}: {'nothing was published' if failed else 'nothing to do'}{failed}, {took}"
    done = [one for one in report.partitions if one.changed]
    counted = change_of(sum(one.messages_in for one in done), sum(one.messages_out for one in done), "message")
    size = change(sum(one.bytes_in for one in done), sum(one.bytes_out for one in done), format_bytes)
    return f"{report.topic}: {counted}, {size}{failed}, {took}"


def _plan_table(plan: TopicRoundPlan) -> Table[PartitionPlan]:
    """What a round would read and write of the partitions."""
    header = ("PARTITION", "LEDGER", "UP TO", "VIEW ENTRIES", "NEW ENTRIES", "READS", "WRITES", "RESULT")
    return Table(header, plan.partitions, _plan_row, left=("RESULT",))


def _plan_row(one: PartitionPlan) -> tuple[str, ...]:
    up_to = _place(one.horizon)
    if one.horizon_after not in (None, one.horizon):
        up_to = f"{up_to} → {_place(one.horizon_after)}"
    result = "nothing to do" if one.idle else "writes a compacted view"
    return (
        str(one.partition),
        "-" if one.compacted_ledger is None else str(one.compacted_ledger),
        up_to,
        count(one.view_entries),
        count(one.new_entries),
        at_most(one.bytes_read_at_most),
        at_most(one.bytes_written_at_most),
        f"FAILS: {coded(one.error, one.error_code)}" if one.error is not None else result,
    )


def _place(place: EntryPlace | None) -> str:
    return "-" if place is None else f"{place.ledger}:{place.entry}"
