"""`lithify kafka clean`: a round over the log directory of a broker that does not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import print_page
from lithify.cli.terminal.progress import phase_progress


@verb("clean")
@click.argument(
    "directory",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    shell_complete=names.directories,
)
@click.option("--topic", "topics", multiple=True, required=True, metavar="T", help="Clean this topic. Repeatable.")
@parameters.pairs("--config", "A setting in Kafka that the metadata log does not have. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and change nothing.")
@click.option("--after-crash", is_flag=True, help="Clean even if the broker was not stopped in order.")
@parameters.task_memory
@parameters.spark_conf
def clean(invocation: Invocation, directory: Path, topics: tuple[str, ...], **given: Any) -> int:
    """Compact the log directory of a Kafka broker that does not run.

    Does what Kafka's log cleaner does, to the same files by the same rules, and leaves what it would leave. The
    winners are found on Spark, so that no number of keys is too large. It is for a disk that is too full for the
    cleaner to finish before the broker needs the space, and for directories of a dead cluster. A broker that runs has
    its own cleaner; to have a topic compacted elsewhere, copy it with `lithify kafka ingest` or `lithify kafka import`.

    DIR is what log.dirs of the broker names. Which topics are compacted, and how, its metadata log says
    (__cluster_metadata-0). If that is in another directory, name it with --config metadata.log.dir=PATH. --config also
    gives what only server.properties of the broker has. Stop the broker in order first. Each replica of a partition is
    cleaned by itself.

    \b
    Examples:
      lithify kafka clean /var/lib/kafka/data --topic orders --dry-run
      lithify kafka clean /mnt/disk2/kafka --topic orders \\
          --config metadata.log.dir=/mnt/disk1/kafka
    """
    from lithify.api.kafka_files.cleaning import clean_log_directory

    invocation.standing = "segments that were replaced are complete; the same command, or the broker, continues"
    with phase_progress(invocation.note) as progress:
        report = clean_log_directory(directory, topics, given.pop("config"), progress=progress, **given)
    if not invocation.printed(report):
        print_page(report.page())
    for log in report.failed:
        invocation.say_error(str(log.error), log.error_code, topic=log.topic, partition=log.partition)
    return 1 if report.failed else 0
