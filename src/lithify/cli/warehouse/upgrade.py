"""`lithify warehouse upgrade` (C66)."""

from __future__ import annotations

import click

from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.output import say


@verb("upgrade")
@click.option("--yes", is_flag=True, help="Upgrade the warehouse. Without --yes, only show what would change.")
def upgrade(invocation: Invocation, yes: bool) -> None:
    """Enable the features of this version of Lithify, such as masks and replicas of compacted topics.

    No topic is changed. Versions of Lithify without features continue to use topics without features. Versions
    that lack one of the added features refuse the warehouse. A warehouse cannot be set back.
    Replication that has failed for want of a feature resumes by itself. Repeating it changes nothing.

    \b
    Examples:
      lithify warehouse info
      lithify warehouse upgrade --yes
      lithify warehouse upgrade --catalog backup --yes
    """
    lake = invocation.open_lake()
    if not yes and (info := lake.info()).lacks:
        refuse(
            f"{info.warehouse}: nothing was changed",
            f"lets its topics have {', '.join(info.lacks)}; earlier versions of Lithify then refuse the warehouse, or "
            "the topics that get a feature",
        )
    report = lake.upgrade()
    if invocation.printed(report):
        return
    if report.changed:
        newer = (
            f" from format {report.format_before} to {report.format}" if report.format_before < report.format else ""
        )
        say(f"{report.warehouse}: upgraded{newer}")
        say(f"  its topics may have: {', '.join(report.features)}")
    else:
        say(f"{report.warehouse}: it already has all features of this version")
