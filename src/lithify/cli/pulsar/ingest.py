"""`lithify pulsar ingest`: copies topics of a Pulsar cluster into the lake, once or continuously (C52, C53)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.ingests import run_ingest
from lithify.cli.invocation import Invocation, verb
from lithify.cli.metrics_options import metrics_options
from lithify.cli.parameters import DurationType
from lithify.cli.pulsar.pulsar_settings import cluster_config, cluster_options, skip_damaged


@verb("ingest")
@click.argument("topics", metavar="TOPIC...", nargs=-1, required=True)
@cluster_options
@click.option(
    "--into",
    metavar="TOPIC|STREAM/",
    shell_complete=names.targets,
    help="Topic or stream that receives the copy. Default: the topic of the same name.",
)
@click.option(
    "--continuous/--available-now",
    default=False,
    help="Keep copying, or end after the messages there are now (default).",
)
@click.option(
    "--interval", "interval_ms", type=DurationType(), default="1s", show_default=True, help="Time between two batches."
)
@click.option(
    "--max-records-per-trigger",
    "max_records",
    type=click.IntRange(1),
    metavar="N",
    help="Copy at most this many messages of a partition in one batch, then finish the entry.",
)
@click.option(
    "--accept-loss",
    "accepts_loss",
    is_flag=True,
    help="Continue although Pulsar may have trimmed messages before they were copied.",
)
@skip_damaged
@parameters.pairs("--config", "A setting of the topics that are created. Repeatable.")
@parameters.spark_conf
@metrics_options
def ingest(
    invocation: Invocation,
    service_url: str,
    admin_url: str,
    client_conf: Path | None,
    **given: Any,
) -> int:
    """Copy topics of a Pulsar cluster into the lake.

    Message ids, publish and event times, keys, payloads and properties of all partitions are
    unchanged. It creates missing topics with the preset pulsar. Encrypted batches and chunks are
    copied as whole entries, which no round removes.

    A copy continues behind the last id that it has, so it can be killed at any time and started
    again: every message is copied exactly once. A durable subscription, lithify-..., makes Pulsar
    keep what is not copied yet. With --admin-url it notices a topic that was deleted and recreated,
    and messages that were trimmed before they were copied.

    \b
    Examples:
      lithify pulsar ingest persistent://shop/eu/orders \\
          --service-url pulsar://broker:6650 \\
          --admin-url http://broker:8080
      lithify pulsar ingest persistent://shop/eu/orders \\
          --client-conf client.conf --into shop/orders --continuous
    """
    cluster = cluster_config(service_url, admin_url, client_conf)
    return run_ingest(invocation, lambda lake, **how: lake.ingest_pulsar(cluster, **how), given)
