"""`lithify warehouse upgrade` (C66)."""

from __future__ import annotations

import click

from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.output import say


@verb("upgrade")
@click.option("--yes", is_flag=True, help="Upgrade the warehouse. Without --yes, only show what would change.")
def upgrade(invocation: Invocation, yes: bool) -> None:
    """Enable the features of this version of Lithify, such as replicas of compacted topics.

    No topic is changed, and earlier versions of Lithify go on with those that they know. They refuse the topics
    that get a feature from then on. A warehouse cannot be set back. Replication that has failed for want
    of a feature resumes by itself. Repeating it changes nothing.

    \b
    Examples:
      lithify warehouse info
      lithify warehouse upgrade --yes
      lithify warehouse upgrade --catalog backup --yes
    """
    lake = invocation.open_lake()
    if not yes and (info := lake.info()).format < info.newest_format:
        refuse(
            f"{info.warehouse}: nothing was changed",
            f"makes the warehouse one of format {info.newest_format}; earlier versions of Lithify then refuse topics "
            "that get a feature",
        )
    report = lake.upgrade()
    if invocation.printed(report):
        return
    if report.changed:
        say(f"{report.warehouse}: upgraded from format {report.format_before} to {report.format}")
        say(f"  its topics may have: {', '.join(report.features)}")
    else:
        say(f"{report.warehouse}: it is of format {report.format} already")
