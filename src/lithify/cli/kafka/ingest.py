"""`lithify kafka ingest`: copies topics of a Kafka cluster into the lake, once or continuously (C1, C6)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.ingests import run_ingest
from lithify.cli.invocation import Invocation, verb
from lithify.cli.kafka.copied_topics import check_chosen, copied_topics, for_null_keys
from lithify.cli.kafka.settings import kafka_options, kafka_settings
from lithify.cli.metrics_options import metrics_options
from lithify.cli.parameters import DurationType


@verb("ingest")
@kafka_options
@copied_topics
@click.option(
    "--continuous/--available-now",
    default=False,
    help="Keep copying, or end after the records there are now (default).",
)
@click.option(
    "--interval", "interval_ms", type=DurationType(), default="1s", show_default=True, help="Time between two batches."
)
@click.option(
    "--max-records-per-trigger",
    "max_records",
    type=click.IntRange(1),
    metavar="N",
    help="Copy at most this many records in one batch. Default: 10,000,000, or what takes 4 GiB in Kafka.",
)
@for_null_keys
@click.option(
    "--accept-loss",
    "accepts_loss",
    is_flag=True,
    help="Continue behind records, and deletes, that Kafka has dropped before they were copied.",
)
@click.option(
    "--resync",
    "resyncs",
    is_flag=True,
    help="Copy what is new, and delete in the same commit the keys of the copy that Kafka no longer has. "
    "Reads the keys of the whole topic, whose cleanup.policy must be compact.",
)
@parameters.pairs("--config", "A setting of the topics that are created. Repeatable.")
@click.option(
    "--jars",
    metavar="DIR",
    shell_complete=names.directories,
    help="Directory with Spark's Kafka connector. Default: $LITHIFY_JARS, or Spark fetches it.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    shell_complete=names.directories,
    help="Directory for Spark's checkpoints; on a cluster, one that all executors can write to. A copy never "
    "continues from them.",
)
@parameters.spark_conf
@metrics_options
def ingest(
    invocation: Invocation,
    bootstrap_servers: str | None,
    kafka_conf_file: Path | None,
    kafka_conf: Mapping[str, str],
    null_key: str,
    **given: Any,
) -> int:
    """Copy topics of a Kafka cluster into the lake.

    Partitions, offsets, timestamps, keys, values and headers are unchanged; only committed records
    are copied. It creates missing topics with the compaction settings that they have in Kafka.

    A copy continues at its own log ends, so it can be killed at any time and started again: every
    record is copied exactly once.

    \b
    A topic stops with an error, and the others are copied, if
    - it was deleted and recreated,
    - its offsets went back, or
    - Kafka has deleted records before they were copied, or may have: it drops
      deletes of a compacted topic after delete.retention.ms.

    \b
    Examples:
      lithify kafka ingest --bootstrap-servers broker:9092 --topic orders
      lithify kafka ingest --bootstrap-servers broker:9092 --topic orders \\
          --into shop/orders --continuous
      lithify kafka ingest --kafka-conf-file client.properties --into shop/ \\
          --topic-pattern 'shop-.*'
    """
    kafka = kafka_settings(bootstrap_servers, kafka_conf_file, kafka_conf)
    check_chosen(given["topics"], given["pattern"])
    given["drops_keyless"] = null_key == "drop"
    return run_ingest(invocation, lambda lake, **how: lake.ingest(kafka, **how), given)
