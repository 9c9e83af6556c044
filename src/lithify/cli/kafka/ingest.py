"""`lithify kafka ingest`: copies topics of a Kafka cluster into the lake, once or continuously (C1, C6)."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.kafka.settings import kafka_options, kafka_settings
from lithify.cli.parameters import DurationType
from lithify.cli.terminal.output import columns, count, say, show
from lithify.cli.terminal.stopping import end_spark
from lithify.model.settings.units import format_duration

if TYPE_CHECKING:
    from lithify.reports.ingest import IngestBatch, IngestReport


SPARK_ENDS_WITHIN_S = 2.0
"""The time for Spark's orderly end, which usually takes less; then it is killed."""


@verb("ingest")
@kafka_options
@click.option("--topic", "topics", multiple=True, metavar="T", help="A Kafka topic; may be repeated.")
@click.option("--topic-pattern", "pattern", metavar="REGEX", help="All topics whose whole name matches.")
@click.option("--into", metavar="TOPIC|STREAM/", help="The copy. Default: the same name in the stream default.")
@click.option(
    "--continuous/--available-now", default=False, help="Keep copying, or end after the current records (default)."
)
@click.option(
    "--interval", "interval_ms", type=DurationType(), default="1s", show_default=True, help="Between two batches."
)
@click.option(
    "--max-records-per-trigger", "max_records", type=click.IntRange(1), metavar="N", help="In one batch, at most."
)
@click.option("--null-key", type=click.Choice(("reject", "drop")), default="reject", help="Records without a key.")
@click.option("--accept-loss", "accepts_loss", is_flag=True, help="Continue after records that Kafka has deleted.")
@parameters.pairs("--config", "A setting of topics that it creates.")
@click.option("--jars", metavar="DIR", help="Of Spark's Kafka connector. Default: $LITHIFY_JARS, or Spark fetches.")
@click.option("--checkpoint", metavar="DIR", help="For Spark's checkpoints; on a cluster, a shared directory.")
@parameters.spark_conf
def ingest(
    invocation: Invocation,
    bootstrap_servers: str | None,
    kafka_conf_file: Path | None,
    kafka_conf: Mapping[str, str],
    null_key: str,
    **given: Any,
) -> int:
    """Copy topics of a Kafka cluster into the lake.

    Partitions, offsets, timestamps, keys, values and headers stay as they are; only committed records
    are copied. It creates missing topics with the compaction settings that they have in Kafka.

    A copy continues at its own log ends, so it can be killed at any time and started again: every
    record is copied exactly once. A topic stops with an error, and the others are copied, if it was
    deleted and recreated, if its offsets went back, or if Kafka has deleted records before they were
    copied.

    \b
    Examples:
      lithify kafka ingest --bootstrap-servers broker:9092 --topic orders
      lithify kafka ingest --bootstrap-servers broker:9092 --topic orders \\
          --into shop/orders --continuous
      lithify kafka ingest --kafka-conf-file client.properties --into shop/ \\
          --topic-pattern 'shop-.*'
    """
    kafka = kafka_settings(bootstrap_servers, kafka_conf_file, kafka_conf)
    lake, stopped = invocation.open_lake(), _stop_on_signals()

    def tell(batch: IngestBatch) -> None:
        if invocation.printed(batch):
            sys.stdout.flush()
        elif batch.records:
            say(_batch_line(batch))

    drops_keyless = null_key == "drop"
    reports = lake.ingest(kafka, **given, drops_keyless=drops_keyless, tell=tell, stops=stopped.is_set)
    _print(invocation, reports)
    if stopped.is_set():
        end_spark(SPARK_ENDS_WITHIN_S)
    return 1 if any(report.error is not None for report in reports) else 0


def _stop_on_signals() -> Event:
    """After a signal the running batch is abandoned or committed, the last one. A second signal ends the program."""
    stopped = Event()

    def handle(number: int, _frame: FrameType | None) -> None:
        if stopped.is_set():  # a copy can be killed at any moment (C6)
            end_spark(0)
            os._exit(128 + number)
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
    return stopped


def _batch_line(batch: IngestBatch) -> str:
    rate = 1000 * batch.records / max(1, batch.duration_ms)
    return (
        f"{batch.source} → {batch.topic}: {count(batch.records)} records in {format_duration(batch.duration_ms)} "
        f"({count(round(rate))}/s), lag {count(batch.lag)}"
    )


def _print(invocation: Invocation, reports: tuple[IngestReport, ...]) -> None:
    if invocation.printed(*reports):
        return
    header = ("SOURCE", "TOPIC", "BATCHES", "RECORDS", "RECORDS/S", "TIME")
    rows = [
        (r.source, r.topic, *map(count, (r.batches, r.records, round(r.records_per_s))), format_duration(r.duration_ms))
        for r in reports
    ]
    show(columns(header, rows, left=("SOURCE", "TOPIC")))
    for report in reports:
        for hole in report.holes:
            gone = f"offsets {hole.start_offset} to {hole.end_offset - 1}"
            say(f"{report.topic}[{hole.partition}]: {gone} were never copied")
        if report.error is not None:
            say(f"{report.source}: {report.error}")
