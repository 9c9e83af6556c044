"""`lithify kafka publish`: publishes a compacted topic into a Kafka topic (C1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.kafka.settings import kafka_options, kafka_settings
from lithify.cli.parameters import DurationType
from lithify.cli.terminal.output import columns, say, show
from lithify.cli.terminal.progress import record_progress
from lithify.kafka_client.names import without_unknown
from lithify.model.settings.units import format_duration
from lithify.reports.tables.wording import count, plural

if TYPE_CHECKING:
    from lithify.kafka import PublishReport


@verb("publish")
@parameters.topic
@kafka_options
@click.option("--to", required=True, metavar="TOPIC", help="Kafka topic to write to; created if it is missing.")
@click.option(
    "--timeout",
    "timeout_ms",
    type=DurationType(),
    default="30s",
    show_default=True,
    help="How long to wait for each response of Kafka.",
)
def publish(invocation: Invocation, topic_name: str, to: str, timeout_ms: int, **kafka: Any) -> None:
    """Publish a compacted topic into a Kafka topic.

    Publishes every record that is left, in its partition, with key, value, timestamp and headers; of a topic
    with compaction.mode=side-by-side the compacted view, then the backlog after it. Offsets are the target's.

    It can be ended at any time and started again: every record is published exactly once. When the topic
    has grown, the same command publishes the new records. A target with other writers is refused.

    \b
    Examples:
      lithify kafka publish orders --bootstrap-servers broker:9092 --to latest
      lithify kafka publish orders --kafka-conf-file client.properties --to latest
    """
    from lithify.kafka import publish as publish_topic

    given = kafka_settings(**kafka)
    conf = without_unknown(given)
    if unknown := given.keys() - conf.keys():
        say(f"not used, as no Kafka client has them: {', '.join(sorted(unknown))}")
    topic = invocation.open_whole_topic(topic_name)
    with record_progress(f"{topic.name} → {to}") as tell:
        report = publish_topic(topic, conf, to, timeout_s=timeout_ms / 1000, tell=tell)
    if not invocation.printed(report):
        _print(report)


def _print(report: PublishReport) -> None:
    header = ("PARTITION", "FROM", "TO", "RECORDS")
    rows = [tuple(map(count, (x.partition, x.start_offset, x.end_offset, x.records))) for x in report.logs]
    show(columns(header, rows))
    how = "created, and published" if report.created else "continued with" if report.resumed else "published"
    say(f"{report.to}: {how} {plural(report.records, 'record')} in {format_duration(report.duration_ms)}")
