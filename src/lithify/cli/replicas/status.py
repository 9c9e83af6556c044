"""`lithify replica status`: what replicas have, and what they lack."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import print_page, say
from lithify.reports.replicas.status import ReplicaStatus


@verb("status")
@click.argument("name", metavar="[NAME]", required=False, shell_complete=names.replicas)
@parameters.coordination_url
def status(invocation: Invocation, name: str | None, coordination_url: str | None) -> None:
    """Show how far replicas are behind their sources.

    It prints a line for each topic. VERSION is the version of the source that the replica has. LAG and LAG BYTES
    are the records and bytes that it lacks. LAG TIME is how long it has lacked them.

    \b
    STATE is one of
    - copying: the first copy is under way
    - replicating: the replica keeps up
    - waiting: no daemon has checked it yet, or none runs
    - paused
    - failed: the error and the next try are below the line

    If it is to compact by itself, a line below shows whether it does. If committed positions of consumer groups
    are copied, a line below shows how many differ from the source. With --json it also shows up to which offset of
    each partition a consumer group can continue at the replica.

    \b
    Examples:
      lithify replica status
      lithify replica status orders-to-backup --json | jq .log_end_offsets
      lithify replica status --json | jq -r 'select(.state == "failed") | .error'
    """
    statuses = invocation.open_lake().replicas(coordination_url=coordination_url).status(name)
    if invocation.printed(*statuses):
        return
    if not statuses:
        say("no replicas yet (`lithify replica add STREAM/TOPIC --to WAREHOUSE` defines one)")
        return
    print_page(ReplicaStatus.listed(statuses))
