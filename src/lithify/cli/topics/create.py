"""`lithify topic create`."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import say
from lithify.errors import TopicExistsError
from lithify.model.settings.table import SETTINGS
from lithify.model.settings.units import plural
from lithify.reports.changed_settings import creation_notes


@verb("create")
@parameters.new_topic
@click.option(
    "--partitions",
    type=int,
    metavar="N",
    help="Number of partitions; it can only grow later. Default: the stream's, or 1.",
)
@click.option(
    "--like",
    type=click.Choice(("kafka", "pulsar", "mapr")),
    default="kafka",
    show_default=True,
    help="Start from the defaults of this system.",
)
@parameters.pairs("--config", "A topic setting. Repeatable.")
@parameters.if_not_exists
def create(
    invocation: Invocation,
    topic_name: str,
    partitions: int | None,
    like: str,
    config: dict[str, str],
    if_not_exists: bool,
) -> None:
    """Create a topic. If it exists, that is an error; with --if-not-exists it is left unchanged.

    Settings have Kafka's names and meaning; `lithify topic info` shows them all. The settings of --like and
    --config are the topic's own. It inherits the others from its stream (`lithify stream info`). Durations and
    sizes may have units: 7d, 30s, 128MiB.

    \b
    Examples:
      lithify topic create orders --partitions 4
      lithify topic create eu/customers --config min.compaction.lag.ms=1h
      lithify topic create events --config cleanup.policy=delete
      lithify topic create orders --if-not-exists
      lithify topic create states --like pulsar --partitions 4
    """
    lake = invocation.open_lake()
    try:
        info = lake.create_topic(topic_name, partitions, like=like, config=config).info()
    except TopicExistsError:
        if not if_not_exists:
            raise
        info = lake.topic(topic_name).info()
        if not invocation.printed(info):
            say(
                f"{info.original_name}: exists already with {plural(info.partitions, 'partition')}; nothing was changed"
            )
        return
    if invocation.printed(info):
        return
    chosen = [f"{name}={info.config[name]}" for name in SETTINGS if name in config]
    say(f"{info.original_name}: created with {plural(info.partitions, 'partition')}{''.join(f', {c}' for c in chosen)}")
    for note in creation_notes(info.config, config):
        say(note)
