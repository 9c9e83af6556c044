"""`lithify kafka promote`: makes the copy of a Kafka topic a topic of its own (C70)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.output import say


@verb("promote")
@parameters.topic
@click.option("--yes", is_flag=True, help="Promote it. Without --yes, only show what it is a copy of.")
def promote(invocation: Invocation, topic_name: str, yes: bool) -> None:
    """Turn the copy of a Kafka topic into a topic of its own.

    A copy takes no records but those that an ingest copies, since Kafka gives their offsets. Once promoted it
    takes records as any topic, and its offsets continue where the copy ended. No ingest can continue
    with it: to follow Kafka again, ingest into another topic. Kafka is not contacted, so let an ingest
    copy the rest before. Without --yes nothing is changed.

    \b
    Examples:
      lithify kafka promote orders --yes
    """
    from lithify.kafka import promote as promote_copy

    topic = invocation.open_whole_topic(topic_name)
    if not yes and (of := (info := topic.info()).copy_of) is not None:
        refuse(
            f"{topic.name} at {info.location}: it remains a copy of Kafka's {of}",
            "makes it a topic of its own, which no ingest can continue; first let an ingest copy the rest",
        )
    report = promote_copy(topic)
    if not invocation.printed(report):
        say(f"{report.topic}: a topic of its own, no longer a copy of Kafka's {report.copy_of}")
