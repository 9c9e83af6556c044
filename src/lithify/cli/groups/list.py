"""`lithify group list`."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import print_page, say
from lithify.reports.groups import GroupInfo


@verb("list")
@parameters.coordination_url
def list_groups(invocation: Invocation, coordination_url: str | None) -> None:
    """List the consumer groups that have committed a position.

    \b
    Examples:
      lithify group list
      lithify group list --json | jq -r .group
    """
    groups = invocation.open_lake().groups(coordination_url=coordination_url)
    if invocation.printed(*groups):
        return
    if not groups:
        say("no groups yet (`lithify consume TOPIC --group G` makes one)")
        return
    print_page(GroupInfo.listed(groups))
