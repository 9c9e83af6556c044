"""`lithify undo`: undoes the last round (C7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lithify.cli import parameters
from lithify.cli.cuts.cut_results import print_cut
from lithify.cli.interruption import committing
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.model.settings.units import format_time, plural

if TYPE_CHECKING:
    from lithify.reports.cut import CutReport


@verb("undo")
@parameters.topic
@click.option("--yes", is_flag=True, help="Undo the round. Without --yes, only show it.")
def undo(invocation: Invocation, topic_name: str, yes: bool) -> None:
    """Undo the last round.

    Restores every log below the round's horizon as it was before; records appended since remain. A
    second undo undoes the round before, as long as the version before that is retained (`lithify
    versions`). It is refused, with the reason, if a log cannot be restored completely. Without --yes
    nothing is changed.

    \b
    Examples:
      lithify undo orders
      lithify undo orders --yes
    """
    topic = invocation.open_whole_topic(topic_name)
    if not yes:
        planned = topic.plan_undo()
        back = f"undoes {_round(planned)} {_summary(planned)}"
        refuse(f"{topic.name}: nothing was undone", back)
    with committing(invocation, topic.name) as work:
        report = topic.undo()
        work.ended(report.version, changed=report.changed)
        print_cut(invocation, report, f"the round {report.undone_run_id} was undone {_summary(report)}", "")


def _round(planned: CutReport) -> str:
    """`the round of 2026-01-31T12:00:00.000Z`."""
    round_ms = planned.undone_round_ms
    return "the last round" if round_ms is None else f"the round of {format_time(round_ms)}"


def _summary(report: CutReport) -> str:
    """`in 2 logs, with 3 records that it had removed`; of a side-by-side topic no records of the backlog were."""
    records = sum(log.records_added - log.records_removed for log in report.logs)
    back = f", with {plural(records, 'record')} that it had removed" if records > 0 else ""
    return f"in {plural(len(report.logs), 'log')}{back}"
