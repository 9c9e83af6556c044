"""`lithify replica add`: defines a replica."""

from __future__ import annotations

from typing import Any

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.invocation import Invocation, verb
from lithify.cli.replicas.replica_parameters import summary
from lithify.cli.terminal.output import say


@verb("add")
@click.argument("what", metavar="STREAM[/TOPIC]", shell_complete=names.either(names.streams, names.topics))
@click.option(
    "--to",
    metavar="DIR|CATALOG",
    shell_complete=names.directories,
    required=True,
    help="Warehouse that receives the replicas.",
)
@click.option(
    "--name", metavar="NAME", help="Name of the replica. Default: from topic and target, such as orders-to-backup."
)
@click.option("--throttle", metavar="RATE", help="Copy at most this much per second in total: 20MB/s.")
@click.option("--sync-groups", is_flag=True, help="Copy the committed positions of consumer groups as well.")
@click.option(
    "--compact", is_flag=True, help="Compact the replica's topics themselves where their sources are not compacted."
)
@click.option(
    "--paused", is_flag=True, help="Create the replica paused: nothing is copied until `lithify replica resume`."
)
@parameters.coordination_url
def add(invocation: Invocation, what: str, to: str, coordination_url: str | None, **given: Any) -> None:
    """Define a replica of a topic or a stream in another warehouse.

    `lithify replica run` copies the topics and keeps the replicas up to date. A replica is at every moment
    exactly what its source was at some version: records, offsets and their holes, compacted views. It
    takes no records, and is read like any topic. With a stream all its topics are copied, later ones too;
    STREAM/ names the stream where a topic has its name as well.

    With --compact a topic whose source is never compacted gets a compacted view of its own, beside the log,
    which remains equal to the source's: cleaners of the target's warehouse and `lithify compact` there keep it.

    With --sync-groups consumer groups can continue at the replica: their committed positions are copied into the
    database of the target's own catalog, after the copies that they belong to and every 30 seconds. A
    position that a member has committed there, or that was reset there, remains unchanged.

    A directory is written with a '/'; any other target is a catalog of PyIceberg's configuration.

    \b
    Examples:
      lithify replica add orders --to /srv/backup
      lithify replica add orders --to /srv/backup --sync-groups
      lithify replica add clicks --to /srv/backup --compact
      lithify replica add web --to prod --throttle 20MB/s
      lithify replica add web/clicks --to ./backup --name clicks --paused
    """
    replicas = invocation.open_lake().replicas(coordination_url=coordination_url)
    info = replicas.add(what, to, **given)
    if not invocation.printed(info):
        say(f"{summary(info)} (`lithify replica run` copies it)")
