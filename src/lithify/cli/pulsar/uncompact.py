"""`lithify pulsar uncompact`: drops the views of a live topic (C55)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.pulsar.pulsar_settings import bookkeeper_options, cluster_config, cluster_options, say_notes
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.output import say


@verb("uncompact")
@parameters.new_topic
@cluster_options
@bookkeeper_options
@click.option("--yes", is_flag=True, help="Drop the compacted views. Without --yes, nothing is dropped.")
def uncompact(
    invocation: Invocation,
    topic_name: str,
    service_url: str,
    admin_url: str,
    client_conf: Path | None,
    yes: bool,
    **given: Any,
) -> int:
    """Drop the compacted views of a topic of a live Pulsar cluster.

    Deletes its subscription __compaction with the compacted ledgers, even if such a ledger is gone and
    compacted readers fail. They then get what the topic itself still has, and the next round starts from
    that. What brokers have trimmed is lost with the compacted view. Ledgers that killed rounds left are
    deleted first; only this needs Pulsar's jars. Only superusers and admins of the tenant may do it.

    \b
    Examples:
      lithify pulsar uncompact persistent://shop/orders/states \\
          --client-conf client.conf --yes
    """
    from lithify.api.pulsar import LiveTopic

    topic = LiveTopic(topic_name, cluster_config(service_url, admin_url, client_conf))
    if not yes:
        refuse(
            f"{topic.name}: nothing was dropped",
            "drops its compacted views; messages that brokers have trimmed are lost",
        )
    report = topic.uncompact(**given)
    if not invocation.printed(report):
        dropped = [str(one.partition) for one in report.partitions if one.changed]
        if dropped:
            what = "view of partition" if len(dropped) == 1 else "views of partitions"
            say(f"{report.topic}: dropped the compacted {what} {', '.join(dropped)}")
        elif not report.failed:
            say(f"{report.topic}: there was no compacted view to drop")
    say_notes(report.notes)
    for one in report.failed:
        invocation.say_error(str(one.error), one.error_code, topic=report.topic, partition=one.partition)
    return 1 if report.failed else 0
