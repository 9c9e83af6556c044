"""`lithify group describe`: what a group has left to read (C59)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.groups.parameters import group
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import columns, count, show
from lithify.model.settings.units import format_duration
from lithify.reports.groups import GroupLag

_HEADER = ("LOG", "POSITION", "LOG END", "RECORDS LEFT", "LAG", "COMMITTED")


@verb("describe")
@group
@click.argument("topic_name", metavar="[TOPIC]", required=False)
@parameters.coordination_url
def describe(invocation: Invocation, group: str, topic_name: str | None, coordination_url: str | None) -> int:
    """Show what a group has left to read.

    Of every partition of its topics: its position, the records that are really left (offsets that compaction
    has removed do not count), and the age of the oldest of them; and whether the group holds tombstones
    (tombstone.hold.groups). Partitions without a position are read from their start. It ends with 1 if
    the group cannot continue at a position: the log was recreated or truncated, deletes that it has not
    read are gone, or the log cannot be read.

    \b
    Examples:
      lithify group describe billing
      lithify group describe billing orders --json | jq .records_left
    """
    lags = invocation.open_lake().group(group, coordination_url=coordination_url).describe(topic_name)
    if not invocation.printed(*lags):
        holds = ("HOLDS",) if any(lag.holds_tombstones for lag in lags) else ()
        rows = [(*_row(lag), *("tombstones" if lag.holds_tombstones else "-" for _ in holds)) for lag in lags]
        show(columns((*_HEADER, *holds), rows, left=("LOG", "COMMITTED", *holds), wrap=False))
    lost = [lag for lag in lags if lag.error is not None]
    for lag in lost:
        invocation.say_error(str(lag.error), lag.error_code, topic=lag.topic, partition=lag.partition)
    return 1 if lost else 0


def _row(lag: GroupLag) -> tuple[str, ...]:
    return (
        f"{lag.topic}-{lag.partition}",
        _number(lag.position),
        _number(lag.log_end_offset),
        _number(lag.records_left),
        "-" if lag.lag_ms is None else format_duration(lag.lag_ms),
        lag.committed_at or "never",
    )


def _number(number: int | None) -> str:
    return "-" if number is None else count(number)
