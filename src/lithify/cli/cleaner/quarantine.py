"""`lithify quarantine`: lists the logs whose rounds fail, and has cleaners retry them (C31)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, the_partition, verb
from lithify.cli.terminal.output import print_page, say
from lithify.model.failure import number_of_times
from lithify.model.settings.units import plural
from lithify.reports.page.wording import count
from lithify.reports.quarantine import ReleaseReport


@verb("list")
def list_quarantine(invocation: Invocation) -> int:
    """List the logs whose rounds fail.

    Of all topics, the worst first. Cleaners retry a failed log after a delay that grows with each
    failure; after 8 failures in a row they quarantine it and skip it until `lithify quarantine
    release`. Reads metadata only.

    \b
    Examples:
      lithify quarantine list
      lithify quarantine list --json | jq -r 'select(.quarantined) | .topic'
    """
    quarantine = invocation.open_lake().quarantine()
    if not invocation.printed(*quarantine.logs):
        print_page(quarantine.page())
    for topic in quarantine.unreadable:
        invocation.say_error(topic.error, topic.error_code, topic=topic.topic)
    if not invocation.json:
        quarantined = sum(log.quarantined for log in quarantine.logs)
        say(f"{plural(quarantined, 'log')} quarantined, {count(len(quarantine.logs) - quarantined)} failing")
    return 1 if quarantine.unreadable else 0


@verb("release")
@parameters.topic
@click.option(
    "--partition",
    "partitions",
    type=int,
    multiple=True,
    metavar="P",
    help="Release only this partition. Repeatable. Default: all that fail.",
)
def release(invocation: Invocation, topic_name: str, partitions: tuple[int, ...]) -> None:
    """Let cleaners retry the logs whose rounds failed.

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
    if invocation.printed(report):
        return
    say(f"{report.topic}: {_released(report)}; cleaners try again at once")


def _released(report: ReleaseReport) -> str:
    logs = [f"{log.partition} (failed {number_of_times(log.failures)})" for log in report.released[:10]]
    more = len(report.released) - len(logs)
    return f"released {', '.join(logs)}" + (f" and {plural(more, 'more log')}" if more else "")
