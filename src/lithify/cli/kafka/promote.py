"""`lithify kafka promote`: makes the copy of a Kafka topic a topic of its own (C70)."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import say


@verb("promote")
@parameters.topic
def promote(invocation: Invocation, topic_name: str) -> None:
    """Turn the copy of a Kafka topic into a topic of its own.

    A copy takes no records but those that an ingest copies, since Kafka gives their offsets. Once promoted it
    takes records as any topic, and its offsets continue where the copy ended. No ingest can continue
    with it: to follow Kafka again, ingest into another topic. Kafka is not asked.

    \b
    Examples:
      lithify kafka promote orders
    """
    from lithify.kafka import promote as promote_copy

    report = promote_copy(invocation.open_whole_topic(topic_name))
    if not invocation.printed(report):
        say(f"{report.topic}: a topic of its own, and no copy of Kafka's {report.copy_of} any more")
