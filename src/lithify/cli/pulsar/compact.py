"""`lithify pulsar compact`: a round of a live topic now, or the plan of one (C54, C55)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lithify.cli import parameters
from lithify.cli.interruption import interruptible
from lithify.cli.invocation import Invocation, verb
from lithify.cli.pulsar.pulsar_settings import (
    bookkeeper_options,
    cluster_config,
    cluster_options,
    say_notes,
    skip_damaged,
)
from lithify.cli.terminal.output import print_page
from lithify.cli.terminal.progress import phase_progress
from lithify.model.settings.units import plural


class ReplicationType(click.ParamType[tuple[int, int, int]]):
    """`E,W,A`: ensemble, write quorum and ack quorum."""

    name = "E,W,A"

    def convert(
        self, value: str | tuple[int, int, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int, int]:
        if isinstance(value, tuple):
            return value
        numbers = value.split(",")
        if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
            self.fail(f"{value!r} is not three numbers", param, ctx)
        ensemble, write, ack = map(int, numbers)
        if not ensemble >= write >= ack >= 1:
            self.fail(f"{value}: a quorum cannot be larger than the number before it, or zero", param, ctx)
        return ensemble, write, ack


@verb("compact")
@parameters.new_topic
@cluster_options
@click.option("--plan", "only_plan", is_flag=True, help="Print what a round would do, and change nothing.")
@click.option(
    "--order",
    type=click.Choice(("publish", "event-time")),
    help="Order that decides which message of a key is kept. Default: the broker's; only superusers can omit it.",
)
@click.option(
    "--retain-null-key/--drop-null-key",
    default=None,
    help="What to do with messages without a key. Default: as the broker does; only superusers can omit it.",
)
@skip_damaged
@bookkeeper_options
@click.option(
    "--replication",
    type=ReplicationType(),
    help="Bookies that store a compacted view. Default: what the brokers report, to superusers only.",
)
@parameters.rates("tasks")
@parameters.task_memory
@parameters.spark_conf
def compact(
    invocation: Invocation,
    topic_name: str,
    service_url: str,
    admin_url: str,
    client_conf: Path | None,
    only_plan: bool,
    **given: Any,
) -> int:
    """Compact a topic of a live Pulsar cluster, without its brokers.

    Spark reads the compacted ledger of each partition and the entries after it, and writes a new one,
    which brokers then serve to readers with readCompacted. Up to 128 MiB together, of which 32 MiB
    may be new, are read and written without Spark. Message ids are unchanged. Producers and readers need not
    stop. A partition is refused while the broker compacts it itself; set the topic's compaction
    threshold to 0. A second round without new messages changes nothing.

    Exit code 1 if a partition failed; readers of it get what they got before.

    \b
    Examples:
      lithify pulsar compact persistent://shop/orders/states \\
          --service-url pulsar://broker:6650 --admin-url http://broker:8080 \\
          --jars /opt/pulsar/lib
      lithify pulsar compact persistent://shop/orders/states \\
          --client-conf client.conf --plan
      lithify pulsar compact persistent://shop/orders/states-partition-3 \\
          --client-conf client.conf --read-rate 50MB/s
    """
    from lithify.api.pulsar import LiveTopic

    topic = LiveTopic(topic_name, cluster_config(service_url, admin_url, client_conf))
    if only_plan:
        plan = topic.plan()
        if not invocation.printed(plan):
            print_page(plan.page())
        say_notes(plan.notes)
        return 1 if any(one.error is not None for one in plan.partitions) else 0
    look, before = "the same command with --plan", "readers of {} get the same as before"
    with interruptible(invocation, topic.name, look=look, before=before) as work:
        with phase_progress(invocation.note) as progress:
            report = topic.compact(progress=work.watched(progress), **given)
        views = plural(sum(one.changed for one in report.partitions), "new compacted view")
        invocation.standing = f"{views} of {topic.name} {'were' if views.endswith('s') else 'was'} published"
        if not invocation.printed(report):
            print_page(report.page())
        say_notes(report.notes)
        for one in report.failed:
            invocation.say_error(str(one.error), one.error_code, topic=report.topic, partition=one.partition)
    return 1 if report.failed else 0
