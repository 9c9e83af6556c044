"""`lithify topic uncompact`: drops the compacted view of a topic (C35)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.cuts.cut_results import print_cut
from lithify.cli.interruption import committing
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.model.settings.units import plural


@verb("uncompact")
@parameters.topic
@click.option("--lose-trimmed", is_flag=True, help="Drop it even if only the compacted view still has some records.")
@click.option("--yes", is_flag=True, help="Drop the compacted view. Without --yes, only show the number of records.")
def uncompact(invocation: Invocation, topic_name: str, lose_trimmed: bool, yes: bool) -> None:
    """Drop the compacted view of a side-by-side topic.

    The backlog remains, and the next round creates a new view from it. If retention has trimmed the
    backlog, the view alone may have some records: then it is refused without --lose-trimmed. Without
    --yes nothing is changed.

    \b
    Examples:
      lithify topic uncompact states
      lithify topic uncompact states --yes
    """
    topic = invocation.open_whole_topic(topic_name)
    if not yes and (planned := topic.plan_uncompact(lose_trimmed=lose_trimmed)).changed:
        records = sum(log.records_removed for log in planned.logs)
        views = plural(len(planned.logs), "log")
        refuse(
            f"{topic.name}: nothing was dropped",
            f"drops the compacted view of {views} with {plural(records, 'record')}; the backlog remains",
        )
    with committing(invocation, topic.name) as work:
        report = topic.uncompact(lose_trimmed=lose_trimmed)
        work.ended(report.version, changed=report.changed)
        print_cut(invocation, report, "the compacted view was dropped", "there is no compacted view")
