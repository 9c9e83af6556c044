"""`lithify verify`: proves that no record was lost, or names those that were (C1 to C5, C8)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import print_page
from lithify.cli.terminal.progress import phase_progress

FOUND_SOMETHING = 3


@verb("verify")
@parameters.topic
@click.option(
    "--against", type=int, metavar="VERSION", help="Compare with this version. Default: the one before the last round."
)
@parameters.read_rate("tasks")
@parameters.spark_conf
def verify(
    invocation: Invocation, topic_name: str, against: int | None, read_rate: int | None, spark_conf: dict[str, str]
) -> int:
    """Prove that compaction lost nothing.

    Reads all files and checks them, their offsets and counts, and that each log has exactly the records that the
    rules leave of an earlier version. Prints every finding; exit code 3 if there is one.

    \b
    Examples:
      lithify verify orders
      lithify verify orders --against 12 --json
      lithify verify orders --read-rate 50MB/s
    """
    topic = invocation.open_whole_topic(topic_name)
    invocation.standing = f"{topic.name} was not verified, and is unchanged"
    with phase_progress(invocation.note) as progress:
        report = topic.verify(against=against, read_rate=read_rate, spark_conf=spark_conf, progress=progress)
    invocation.standing = ""
    if not invocation.printed(report):
        print_page(report.page())
    return 0 if report.clean else FOUND_SOMETHING
