"""`lithify topic create`."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import plural, say
from lithify.cli.text.setting_notes import creation_notes
from lithify.model.settings.table import SETTINGS


@verb("create")
@parameters.topic
@click.option(
    "--partitions", type=int, metavar="N", help="Can only be increased later. Default: as its stream says, or 1."
)
@click.option(
    "--like",
    type=click.Choice(("kafka", "pulsar", "mapr")),
    default="kafka",
    show_default=True,
    help="The system whose defaults the settings have.",
)
@parameters.pairs("--config", "A setting; may be repeated.")
def create(invocation: Invocation, topic_name: str, partitions: int | None, like: str, config: dict[str, str]) -> None:
    """Create a topic. An existing one is an error.

    Settings have Kafka's names and meaning; `lithify topic info` shows them all. Those of --like and --config
    are the topic's own, the others it inherits from its stream (`lithify stream info`). Durations and
    sizes may have units: 7d, 30s, 128MiB.

    \b
    Examples:
      lithify topic create orders --partitions 4
      lithify topic create eu/customers --config min.compaction.lag.ms=1h
      lithify topic create events --config cleanup.policy=delete
      lithify topic create states --like pulsar --partitions 4
    """
    info = invocation.open_lake().create_topic(topic_name, partitions, like=like, config=config).info()
    if invocation.printed(info):
        return
    chosen = [f"{name}={info.config[name]}" for name in SETTINGS if name in config]
    say(f"{info.original_name}: created with {plural(info.partitions, 'partition')}{''.join(f', {c}' for c in chosen)}")
    for note in creation_notes(info.config):
        say(note)
