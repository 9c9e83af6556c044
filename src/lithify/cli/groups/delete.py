"""`lithify group delete`: forgets the positions of a group (C58)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.groups.group_parameters import group, say_wait
from lithify.cli.invocation import Invocation, verb
from lithify.cli.parameters import Members
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.output import say
from lithify.model.settings.units import plural


@verb("delete")
@group
@parameters.any_topic
@click.option(
    "--yes", is_flag=True, help="Delete the committed positions. Without --yes, only show how many there are."
)
@parameters.members
def delete(invocation: Invocation, group: str, topic_name: str | None, yes: bool, members: Members) -> None:
    """Delete a group: its committed positions in all topics, or in one.

    Only while it has no members, as for reset. No record is deleted. Without --yes nothing is changed.

    \b
    Examples:
      lithify group delete billing
      lithify group delete billing --yes
      lithify group delete billing orders --yes
    """
    known = invocation.open_lake().group(group, coordination_url=members.coordination_url)
    if not yes:
        planned = sum(len(report.positions) for report in known.plan_delete(topic_name))
        positions = plural(planned, "committed position")
        refuse(f"group {group}: nothing was deleted", f"deletes {positions}, irreversibly")
    reports = known.delete(topic_name, lease_ms=members.lease_ms, tell=say_wait)
    if not invocation.printed(*reports):
        deleted = sum(len(report.positions) for report in reports)
        say(f"group {group}: deleted {plural(deleted, 'committed position')}")
