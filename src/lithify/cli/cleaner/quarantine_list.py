"""`lithify quarantine list`: the logs whose rounds fail (C31)."""

from __future__ import annotations

import textwrap

from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import columns, count, plural, print_json, say, say_error, show, width
from lithify.model.settings.units import format_duration
from lithify.reports.quarantine import FailingLog, QuarantineReport

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
    if invocation.json:
        for log in found.logs:
            print_json(log.to_json())
    elif found.logs:
        show(_lines(found))
    for topic in found.unreadable:
        say_error(topic.error)
    if not invocation.json:
        quarantined = sum(log.quarantined for log in found.logs)
        say(f"{plural(quarantined, 'log')} quarantined, {count(len(found.logs) - quarantined)} failing")
    return 1 if found.unreadable else 0


def _lines(found: QuarantineReport) -> list[str]:
    first, *rows = columns(_HEADER, [_row(log, found.now_ms) for log in found.logs], left=("LOG", "STATE"))
    lines = [first]
    for row, log in zip(rows, found.logs, strict=True):
        lines += [row, *(f"     {text}" for text in textwrap.wrap(log.error, width() - 5))]
    return lines


def _row(log: FailingLog, now_ms: int) -> tuple[str, ...]:
    since_ms = log.failed_ms if log.quarantined else log.since_ms
    return (
        f"{log.topic}-{log.partition}",
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
