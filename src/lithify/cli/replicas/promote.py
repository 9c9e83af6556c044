"""`lithify replica promote`: makes a replica a topic of its own."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.output import say


@verb("promote")
@parameters.topic
@click.option("--yes", is_flag=True, help="Promote it. Without --yes, only show what it is a replica of.")
def promote(invocation: Invocation, topic_name: str, yes: bool) -> None:
    """Turn a replica into a topic of its own.

    In the warehouse of the replica, when its source is lost or is to be replaced. From then on it takes records
    and rounds; offsets continue where the replica ended, and consumer groups at their positions. Its source is
    not told: a daemon that still runs there fails, and changes nothing. Without --yes nothing is changed.

    \b
    Examples:
      lithify replica promote orders --warehouse /srv/backup --yes
    """
    topic = invocation.open_whole_topic(topic_name)
    if not yes and (info := topic.info()).source is not None:
        refuse(
            f"{topic.name} at {info.location}: it remains a replica of the topic in {info.source}",
            "makes it a topic of its own, into which nothing is replicated any more",
        )
    report = invocation.open_lake().replicas().promote(str(topic.topic_name))
    if not invocation.printed(report):
        say(
            f"{report.topic}: a topic of its own since its version {report.version}; it has everything up to "
            f"version {report.source_version} of its source in {report.source}"
        )
