"""`lithify quarantine release`: has cleaners retry logs whose rounds failed (C31)."""

from __future__ import annotations

import click

from lithify.cli.invocation import Invocation, the_partition, verb
from lithify.cli.terminal.output import plural, print_json, say
from lithify.model.failure import number_of_times
from lithify.reports.quarantine import ReleaseReport


@verb("release")
@click.argument("topic_name", metavar="TOPIC")
@click.option(
    "--partition",
    "partitions",
    type=int,
    multiple=True,
    metavar="P",
    help="May be repeated. Default: all that fail.",
)
def release(invocation: Invocation, topic_name: str, partitions: tuple[int, ...]) -> None:
    """Have cleaners retry logs whose rounds failed.

    Cleaners retry them at once, whether they are quarantined or wait for the next try, and count
    failures from 0 again. It deletes no data. A log that is not failing is refused.

    \b
    Examples:
      lithify quarantine release orders
      lithify quarantine release orders --partition 0 --partition 3
    """
    topic, named = invocation.open_topic(topic_name)
    given = {the_partition(topic_name, named, partition) for partition in partitions or (None,)}
    report = topic.release([partition for partition in given if partition is not None] or None)
    if invocation.json:
        print_json(report.to_json())
        return
    say(f"{report.topic}: {_released(report)}; cleaners try at once")


def _released(report: ReleaseReport) -> str:
    logs = [f"{log.partition} (failed {number_of_times(log.failures)})" for log in report.released[:10]]
    more = len(report.released) - len(logs)
    return f"released {', '.join(logs)}" + (f" and {plural(more, 'more log')}" if more else "")
