"""`lithify retain`: applies retention by age and size now (C24)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lithify.cli import parameters
from lithify.cli.cuts.cut_results import print_cut
from lithify.cli.interruption import committing
from lithify.cli.invocation import Invocation, verb
from lithify.cli.parameters import TimeType
from lithify.cli.terminal.confirmation import allow_clock_jump, check_now
from lithify.model.settings.units import format_bytes, plural

if TYPE_CHECKING:
    from lithify.api.topic import Topic
    from lithify.reports.cut import CutReport


@verb("retain")
@parameters.topic
@click.option("--now", "now_ms", type=TimeType(), help="Judge the age of records as of this time. Default: the clock.")
@click.option("--yes", is_flag=True, help="Confirm a --now that is later than the clock.")
@allow_clock_jump
def retain(invocation: Invocation, topic_name: str, now_ms: int | None, yes: bool, allow_clock_jump: bool) -> None:
    """Apply retention by age and size now.

    For topics with delete in cleanup.policy. It drops whole segments from the front of every log:
    those whose newest record is older than retention.ms, and those that exceed retention.bytes.
    Every round does this first, so it needs no --yes. Reads and writes metadata only.

    In a side-by-side topic a segment of the backlog remains until a round has copied its records to
    the compacted view. Then it is removed, at any age, once all groups of backlog.trim.groups have read it.

    \b
    Examples:
      lithify retain events
      lithify status events --now 2026-02-01
    """
    topic = invocation.open_whole_topic(topic_name)
    check_now(
        now_ms, yes, "what retention removes", f"`lithify status {topic_name} --now` shows what is past retention"
    )
    with committing(invocation, topic.name) as work:
        report = topic.retain(now_ms=now_ms, allow_clock_jump=allow_clock_jump)
        work.ended(report.version, changed=report.changed)
        print_cut(invocation, report, f"removed {_removed(report)}", "" if report.changed else _idle(topic, now_ms))


def _idle(topic: Topic, now_ms: int | None) -> str:
    """Why nothing is dropped: nothing is past retention, or a round must first copy it to the compacted view (C33)."""
    waiting = sum(log.retention_waiting_bytes for log in topic.status(now_ms=now_ms).logs)
    if waiting:
        return f"{format_bytes(waiting)} past retention remain until a round has copied them to the compacted view"
    return "no segment is completely past retention"


def _removed(report: CutReport) -> str:
    """`12 records in 2 segments`: the removed records; a rewritten segment is not counted."""
    records = sum(log.records_removed - log.records_added for log in report.logs)
    segments = sum(log.segments_removed for log in report.logs)
    return f"{plural(records, 'record')} in {plural(segments, 'segment')}"
