"""`lithify status`: where every log stands, and whether it is due for a round (C21, C27, C28)."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import click

from lithify.cli.invocation import Invocation, verb
from lithify.cli.output import columns, count, heading, plural, print_json, say, when, width
from lithify.cli.parameters import TimeType
from lithify.cli.round_text import horizon_text
from lithify.model.status import LogStatus, TopicStatus
from lithify.model.units import format_bytes, format_time


@verb("status")
@click.argument("topic_name", metavar="[TOPIC]", required=False)
@click.option("--now", "now_ms", type=TimeType(), help="Judge lags and expiry as of this time.")
def status(invocation: Invocation, topic_name: str | None, now_ms: int | None) -> None:
    """Show where every log stands and whether it is due.

    Of one topic, or of all. LOG is a partition; offsets from START on are in it; below CLEAN BELOW
    a round has been; the next one may touch what is below HORIZON; END is where the next record
    goes. DIRTY is the share of bytes that no round has seen. Reads metadata only.

    \b
    Examples:
      lithify status
      lithify status orders --json | jq '.logs[] | select(.due)'
      lithify status orders --now 2026-02-01
    """
    if topic_name is None:
        topics, only = invocation.open_lake().topics(), None
        if not topics:
            say("no topics yet (`lithify topic create` makes one)")
    else:
        topic, only = invocation.open_topic(topic_name)
        topics = (topic,)
    for number, topic in enumerate(topics):
        found = topic.status(now_ms=now_ms)
        if only is not None:
            found = _only(found, only)
        if invocation.json:
            print_json(found.to_json())
        else:
            click.echo("\n".join([*[""][: number > 0], *_lines(found)]))


def _only(found: TopicStatus, partition: int) -> TopicStatus:
    return replace(found, logs=tuple(log for log in found.logs if log.partition == partition))


def _lines(found: TopicStatus) -> list[str]:
    as_of = f", as of {format_time(found.now_ms)}" if found.now_given else ""
    header = ("LOG", "START", "CLEAN BELOW", "HORIZON", "END", "RECORDS", "SIZE", "DIRTY")
    first, *rows = columns(header, map(_row, found.logs))
    lines = [f"{heading(found.topic)}  version {found.version}{as_of}", first]
    for row, log in zip(rows, found.logs, strict=True):
        lines.append(row)
        lines.append(textwrap.indent("\n".join(textwrap.wrap(_notes(log, found.now_ms), width() - 5)), " " * 5))
    return lines


def _row(log: LogStatus) -> tuple[str, ...]:
    return (
        str(log.partition),
        count(log.log_start_offset),
        count(log.first_dirty_offset),
        count(log.horizon),
        count(log.log_end_offset),
        count(log.records),
        format_bytes(log.bytes),
        f"{log.dirty_ratio:.2f}",
    )


def _notes(log: LogStatus, now_ms: int) -> str:
    """What the figures mean: due or not and why, what holds the horizon, tombstones, last round."""
    notes = [f"{'DUE' if log.due else 'not due'}: {log.due_reason}"]
    if log.due_at_ms is not None and not log.due:
        notes.append(f"due by the clock {when(log.due_at_ms, now_ms)}")
    notes.append(f"horizon {horizon_text(log.horizon_limited_by, log.horizon_held_by)}")
    if log.tombstones:
        expiry = log.next_tombstone_expiry_ms
        goes = "" if expiry is None else f", the next may go {when(expiry, now_ms)}"
        notes.append(f"{plural(log.tombstones, 'tombstone')}{goes}")
    notes.append("no round yet" if log.last_round_ms is None else f"last round {when(log.last_round_ms, now_ms)}")
    if log.quarantined:
        notes.append("QUARANTINED")
    return "; ".join(notes)
