"""`lithify replica promote`: makes a replica a topic of its own."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import say


@verb("promote")
@parameters.topic
def promote(invocation: Invocation, topic_name: str) -> None:
    """Turn a replica into a topic of its own.

    In the warehouse of the replica, when its source is lost or is to be replaced. From then on it takes records
    and rounds; offsets continue where the replica ended, and consumer groups at their positions. Its source is
    not told: a daemon that still runs there fails, and changes nothing.

    \b
    Examples:
      lithify replica promote orders --warehouse /srv/backup
    """
    topic = invocation.open_whole_topic(topic_name)
    report = invocation.open_lake().replicas().promote(str(topic.topic_name))
    if not invocation.printed(report):
        say(
            f"{report.topic}: a topic of its own since its version {report.version}; it has everything up to version "
            f"{report.source_version} of its source in {report.source}"
        )
