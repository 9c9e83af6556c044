"""Rounds of live Pulsar topics as tables of their partitions, with a summary of one line."""

from __future__ import annotations

from lithify.model.settings.units import format_bytes, format_duration, plural
from lithify.reports.pulsar.rounds import EntryPlace, PartitionPlan, PartitionReport, TopicRoundPlan, TopicRoundReport
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import change, change_of, coded, count


def round_table(report: TopicRoundReport) -> Table[PartitionReport]:
    """What became of the partitions."""
    header = ("LOG", "LEDGER", "UP TO", "MESSAGES", "ENTRIES", "BYTES", "RESULT")
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
        return "FAILED, readers get what they got before"
    deleted = f"; deleted {plural(len(one.ledgers_deleted), 'ledger')} of killed rounds" if one.ledgers_deleted else ""
    return ("published" if one.changed else "nothing new") + deleted


def round_summary(report: TopicRoundReport) -> str:
    """One line: messages and bytes before and after, and the time."""
    took = format_duration(report.duration_ms)
    failed = f", {plural(len(report.failed), 'partition')} FAILED" if report.failed else ""
    if not report.changed:
        return f"{report.topic}: {'nothing was published' if failed else 'nothing to do'}{failed}, {took}"
    done = [one for one in report.partitions if one.changed]
    counted = change_of(sum(one.messages_in for one in done), sum(one.messages_out for one in done), "message")
    size = change(sum(one.bytes_in for one in done), sum(one.bytes_out for one in done), format_bytes)
    return f"{report.topic}: {counted}, {size}{failed}, {took}"


def plan_table(plan: TopicRoundPlan) -> Table[PartitionPlan]:
    """What a round would read and write of the partitions."""
    header = ("LOG", "LEDGER", "UP TO", "VIEW", "NEW ENTRIES", "READS", "WRITES", "RESULT")
    return Table(header, plan.partitions, _plan_row, left=("RESULT",))


def _plan_row(one: PartitionPlan) -> tuple[str, ...]:
    up_to = _place(one.horizon)
    if one.horizon_after not in (None, one.horizon):
        up_to = f"{up_to} → {_place(one.horizon_after)}"
    result = "nothing to do" if one.idle else "writes a view"
    return (
        str(one.partition),
        "-" if one.compacted_ledger is None else str(one.compacted_ledger),
        up_to,
        count(one.view_entries),
        count(one.new_entries),
        _at_most(one.bytes_read_at_most),
        _at_most(one.bytes_written_at_most),
        f"FAILS: {coded(one.error, one.error_code)}" if one.error is not None else result,
    )


def _place(place: EntryPlace | None) -> str:
    return "-" if place is None else f"{place.ledger}:{place.entry}"


def _at_most(size: int) -> str:
    return f"≤ {format_bytes(size)}" if size else "-"
