"""`lithify kafka publish`: publishes a compacted topic into a Kafka topic (C1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lithify.cli import parameters
from lithify.cli.ingests import counted, noted, stop_on_signals
from lithify.cli.invocation import Invocation, verb
from lithify.cli.kafka.groups import AskedGroups, ended, group_lines, group_options
from lithify.cli.kafka.settings import kafka_options, kafka_settings, settings_used, wait_option
from lithify.cli.metrics_options import MetricsAsked, in_turn, metrics_options
from lithify.cli.parameters import DurationType, pairs
from lithify.cli.terminal.drawing import columns
from lithify.cli.terminal.output import say, show
from lithify.model.settings.units import format_duration, plural
from lithify.reports.page.wording import count

if TYPE_CHECKING:
    from lithify.kafka import PublishReport


@verb("publish")
@parameters.topic
@kafka_options
@click.option("--to", required=True, metavar="TOPIC", help="Kafka topic to write to; created if it is missing.")
@pairs("--config", "A setting of a target that is created, by Kafka's name. Repeatable.")
@click.option(
    "--replication-factor",
    type=click.IntRange(min=1),
    metavar="N",
    help="Replicas of a target that is created. Default: the cluster's default.",
)
@group_options
@click.option("--continuous", is_flag=True, help="Keep publishing what is appended, until SIGTERM or Ctrl-C.")
@click.option(
    "--interval",
    "interval_ms",
    type=DurationType(),
    default="1s",
    show_default=True,
    help="With --continuous, time between checks for new records.",
)
@wait_option
@metrics_options
def publish(invocation: Invocation, topic_name: str, to: str, continuous: bool, **given: Any) -> int:
    """Publish a compacted topic into a Kafka topic.

    Publishes every record that is left, in its partition, with key, value, timestamp and headers. If the topic
    has compaction.mode=side-by-side, these are the compacted view, then the backlog after it. Offsets are the
    target's.

    A missing target is created with the topic's settings. If the topic is a copy of a Kafka topic, it also gets
    the settings that were set there. --config overrides them; NAME= leaves out one that the copied topic had.

    It can be ended at any time and started again: every record is published exactly once. When the topic
    has grown, the same command publishes the new records. A target with other writers is refused.
    With --continuous it publishes records as they are appended, and waits while Kafka does not answer.

    --translate-groups gives groups their positions, if they have none in the target and no members run. FILE has
    offsets of the Kafka topic that was copied. A group may read records again, but skips none.

    \b
    Examples:
      lithify kafka publish orders --bootstrap-servers broker:9092 --to latest
      lithify kafka publish orders --kafka-conf-file client.properties --to latest
      lithify kafka publish orders --bootstrap-servers broker:9092 --to orders \\
          --replication-factor 3 --config max.message.bytes=2097152
      lithify kafka publish orders --bootstrap-servers broker:9092 --to latest \\
          --continuous
      lithify kafka publish orders --bootstrap-servers broker:9092 --to orders \\
          --translate-groups positions.csv
    """
    from lithify.kafka import publish as publish_topic
    from lithify.metrics.copy_metrics import publish_metrics

    asked = AskedGroups.taken(given)
    metrics: MetricsAsked = given.pop("metrics")
    timing = {"interval_ms": given.pop("interval_ms"), "timeout_s": given.pop("timeout_ms") / 1000}
    target = {name: given.pop(name) for name in ("config", "replication_factor")}
    conf = settings_used(kafka_settings(**given))
    with metrics.served() as meter:
        topic = invocation.open_whole_topic(topic_name)
        measured = publish_metrics(meter, topic.name)
        notes = in_turn(measured.note, noted(invocation))
        how = {**target, **timing, **asked.for_topic(topic), "continuous": continuous, "notes": notes}
        with counted(f"{topic.name} → {to}", stop_on_signals() if continuous else None) as (tell, stops):
            report = publish_topic(topic, conf, to, **how, tell=in_turn(measured.records, tell), stops=stops)
    asked.export_from(report)
    if not invocation.printed(report):
        _print(report)
    return ended(invocation, report.groups)


def _print(report: PublishReport) -> None:
    header = ("PARTITION", "FROM", "TO", "RECORDS")
    rows = [tuple(map(count, (x.partition, x.start_offset, x.end_offset, x.records))) for x in report.logs]
    show([*columns(header, rows), *group_lines(report.groups)])
    how = "created, and published" if report.created else "continued with" if report.resumed else "published"
    say(f"{report.to}: {how} {plural(report.records, 'record')} in {format_duration(report.duration_ms)}")
