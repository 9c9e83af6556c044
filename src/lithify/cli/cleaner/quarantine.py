"""`lithify quarantine`: lists the logs whose rounds fail, and has cleaners retry them (C31)."""

from __future__ import annotations

import textwrap

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, the_partition, verb
from lithify.cli.terminal.output import coded, columns, count, plural, say, show, width
from lithify.model.failure import number_of_times
from lithify.model.names import partition_of
from lithify.model.settings.units import format_duration
from lithify.reports.quarantine import FailingLog, QuarantineReport, ReleaseReport

_HEADER = ("LOG", "STATE", "FAILURES", "SINCE", "NEXT TRY")


@verb("list")
def list_quarantine(invocation: Invocation) -> int:
    """List the logs whose rounds fail.

    Of all topics, the worst first. Cleaners retry a failed log after a delay that grows with each
    failure; after 8 failures in a row they quarantine it and skip it until `lithify quarantine
    release`. Reads metadata only.

    \b
    Examples:
      lithify quarantine list
      lithify quarantine list --json | jq -r 'select(.quarantined) | .topic'
    """
    found = invocation.open_lake().quarantine()
    if not invocation.printed(*found.logs) and found.logs:
        show(_lines(found))
    for topic in found.unreadable:
        invocation.say_error(topic.error, topic.error_code, topic=topic.topic)
    if not invocation.json:
        quarantined = sum(log.quarantined for log in found.logs)
        say(f"{plural(quarantined, 'log')} quarantined, {count(len(found.logs) - quarantined)} failing")
    return 1 if found.unreadable else 0


def _lines(found: QuarantineReport) -> list[str]:
    first, *rows = columns(_HEADER, [_row(log, found.now_ms) for log in found.logs], left=("LOG", "STATE"))
    lines = [first]
    for row, log in zip(rows, found.logs, strict=True):
        lines += [row, *(f"     {text}" for text in textwrap.wrap(coded(log.error, log.error_code), width() - 5))]
    return lines


def _row(log: FailingLog, now_ms: int) -> tuple[str, ...]:
    since_ms = log.failed_ms if log.quarantined else log.since_ms
    return (
        partition_of(log.topic, log.partition),
        "QUARANTINED" if log.quarantined else "failing",
        count(log.failures),
        f"{format_duration(max(0, now_ms - since_ms))} ago",
        _next_try(log, now_ms),
    )


def _next_try(log: FailingLog, now_ms: int) -> str:
    if log.retry_ms is None:
        return "never"
    waits = log.failed_ms <= now_ms < log.retry_ms  # a failure in the future (a clock was ahead) delays no try
    return f"in {format_duration(log.retry_ms - now_ms)}" if waits else "now"


@verb("release")
@parameters.topic
@click.option(
    "--partition",
    "partitions",
    type=int,
    multiple=True,
    metavar="P",
    help="Release only this partition. Repeatable. Default: all that fail.",
)
def release(invocation: Invocation, topic_name: str, partitions: tuple[int, ...]) -> None:
    """Let cleaners retry the logs whose rounds failed.

    Cleaners retry them at once, whether they are quarantined or wait for the next try, and count
    failures from 0 again. It deletes no data. A log that is not failing is refused.

    \b
    Examples:
      lithify quarantine release orders
      lithify quarantine release orders --partition 0 --partition 3
    """
    topic, named = invocation.open_topic(topic_name)
    given = {the_partition(topic_name, named, partition) for partition in partitions or (None,)}
    report = topic.release([partition for partition in given if partition is not None] or None)
    if invocation.printed(report):
        return
    say(f"{report.topic}: {_released(report)}; cleaners try at once")


def _released(report: ReleaseReport) -> str:
    logs = [f"{log.partition} (failed {number_of_times(log.failures)})" for log in report.released[:10]]
    more = len(report.released) - len(logs)
    return f"released {', '.join(logs)}" + (f" and {plural(more, 'more log')}" if more else "")
