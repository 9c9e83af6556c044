"""`lithify replica verify`: compares replicas with their sources, or with their own metadata."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.invocation import Invocation, verb
from lithify.cli.rounds.verify import FOUND_SOMETHING
from lithify.cli.terminal.output import print_page
from lithify.cli.terminal.progress import byte_progress


@verb("verify")
@click.argument("what", metavar="NAME|TOPIC", shell_complete=names.either(names.replicas, names.topics))
@parameters.coordination_url
def verify(invocation: Invocation, what: str, coordination_url: str | None) -> int:
    """Compare a replica with its source, or check it alone if the source is gone.

    With the NAME of a replica, in the warehouse of its source: every topic of it against its source, the same
    files with the same bytes. With a TOPIC that is a replica, in the warehouse that it is in: every file is
    read whole, its pages and counts are checked against the replica's metadata. Prints every
    finding; exit code 3 if there is one.

    \b
    Examples:
      lithify replica verify orders-to-backup
      lithify replica verify orders --warehouse /srv/backup
    """
    replicas = invocation.open_lake().replicas(coordination_url=coordination_url)
    invocation.standing = f"{what} was not verified; nothing was changed"
    with byte_progress("reading") as progress:
        reports = replicas.verify(what, tell=progress)
    invocation.standing = ""
    if not invocation.printed(*reports):
        for report in reports:
            print_page(report.page())
    return 0 if all(report.clean for report in reports) else FOUND_SOMETHING
