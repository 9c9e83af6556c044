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

    A line for each topic. STATE is copying (the first copy is under way), replicating (kept up), waiting (no
    daemon has looked at it yet, or none runs), paused or failed, with the error and the next try below. VERSION is
    that of the source which the replica has; LAG and LAG BYTES are the records and bytes that it lacks, LAG TIME
    is since when.
    Where it is to compact by itself, a line below says whether it does.
    Where committed positions of consumer groups are copied, those that are not as at the source are counted below
    the line.
    With --json it also shows up to which offset of each partition a consumer group can continue at the replica.

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
