"""`lithify group reset`: moves the committed positions of a group (C58)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.groups.group_parameters import group, say_wait
from lithify.cli.invocation import Invocation, the_partition, verb
from lithify.cli.parameters import Members, StartType
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.drawing import columns
from lithify.cli.terminal.output import say, show
from lithify.model.cursor import Start
from lithify.model.names import parse_topic
from lithify.model.settings.units import plural
from lithify.reports.groups import GroupReset
from lithify.reports.page.wording import count


@verb("reset")
@group
@parameters.topic
@click.option(
    "--to",
    "start",
    type=StartType(),
    metavar="START",
    required=True,
    help="Move to earliest, latest, an offset or a time.",
)
@click.option(
    "--partition", type=int, metavar="P", help="Move only the committed position in this partition. Default: all."
)
@click.option("--yes", is_flag=True, help="Move the committed positions. Without --yes, only show the new ones.")
@parameters.members
def reset(  # noqa: PLR0913, PLR0917 - the flags of the verb, by name
    invocation: Invocation,
    group: str,
    topic_name: str,
    start: Start,
    partition: int | None,
    yes: bool,
    members: Members,
) -> None:
    """Move the committed positions of a group in a topic.

    The group must have committed a position, in this topic or another. It is refused while a member of the
    group reads the topic. Running members are found within seconds, and a member that ended without leaving
    counts as dead after --lease. An offset beyond the log is refused. Without --yes nothing is changed.

    \b
    Examples:
      lithify group reset billing orders --to earliest --yes
      lithify group reset billing orders --partition 2 --to 1200 --yes
      lithify group reset billing orders --to 2026-01-31T12:00:00Z
    """
    reference = parse_topic(topic_name)
    named = the_partition(topic_name, reference.partition, partition)
    known = invocation.open_lake().group(group, coordination_url=members.coordination_url)
    topic = reference.original
    if not yes:
        plan = known.plan_reset(topic, start, partition=named)
        show(_lines(plan))
        refuse(f"group {group}: no position was moved", f"moves {plural(_moved(plan), 'committed position')}")
    report = known.reset(topic, start, partition=named, lease_ms=members.lease_ms, tell=say_wait)
    if invocation.printed(report):
        return
    show(_lines(report))
    say(f"group {group}: moved {plural(_moved(report), 'committed position')} in {report.topic}")


def _moved(report: GroupReset) -> int:
    return sum(position.before != position.after for position in report.positions)


def _lines(report: GroupReset) -> list[str]:
    rows = [(str(p.partition), _offset(p.before), _offset(p.after)) for p in report.positions]
    return columns(("PARTITION", "BEFORE", "AFTER"), rows)


def _offset(offset: int | None) -> str:
    return "-" if offset is None else count(offset)
