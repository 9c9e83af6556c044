"""`lithify kafka import`: copies topics from log directories of a broker that does not run (C1, C6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.ingests import run_ingest
from lithify.cli.invocation import Invocation, verb
from lithify.cli.kafka.copied_topics import check_chosen, copied_topics, for_null_keys
from lithify.cli.metrics_options import metrics_options


@verb("import")
@click.argument(
    "directories",
    nargs=-1,
    required=True,
    metavar="DIR...",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    shell_complete=names.directories,
)
@copied_topics
@click.option(
    "--max-records-per-trigger",
    "max_records",
    type=click.IntRange(1),
    metavar="N",
    help="End a batch with the segment that brings it to this many offsets. Default: 10,000,000, or 4 GiB of segments.",
)
@for_null_keys
@click.option(
    "--accept-loss", "accepts_loss", is_flag=True, help="Continue a copy behind records that the directories lack."
)
@click.option(
    "--skip-damaged", is_flag=True, help="Leave out batches that are damaged, instead of refusing their topic."
)
@parameters.pairs("--config", "A setting of the topics that are created. Repeatable.")
@parameters.spark_conf
@metrics_options
def import_(invocation: Invocation, directories: tuple[Path, ...], null_key: str, **given: Any) -> int:
    """Copy topics from log directories of a Kafka broker that does not run.

    DIR is what log.dirs of the broker names, a copy of it, or the folder of one partition, such as orders-0.
    With several directories, of one broker or of many, it takes of each partition the replica that the cluster
    would continue with. Partitions, offsets, timestamps, keys, values and headers are unchanged; only
    committed records are copied.

    The end of a log that a crash has torn is cut where the broker would cut it. Damage before that is named by
    file and byte, and its topic is refused, unless --skip-damaged leaves it out.

    A copy continues at its own log ends, so it can be killed at any time and started again. `lithify
    kafka ingest` continues it from the living cluster.

    \b
    Examples:
      lithify kafka import /var/lib/kafka/data --topic orders
      lithify kafka import disk1/kafka disk2/kafka --into rescued/ \\
          --topic-pattern '.*'
      lithify kafka import orders-0 --topic orders \\
          --config delete.retention.ms=7d
    """
    check_chosen(given["topics"], given["pattern"])
    given |= {"drops_keyless": null_key == "drop", "continuous": False}

    def copy(lake: Any, *, continuous: bool, **how: Any) -> Any:
        assert not continuous
        return lake.import_kafka(directories, **how)

    return run_ingest(invocation, copy, given)
