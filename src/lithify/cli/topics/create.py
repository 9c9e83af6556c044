"""`lithify topic create`."""

from __future__ import annotations

import click

from lithify.cli.invocation import Invocation, verb
from lithify.cli.parameters import PairType, as_mapping
from lithify.cli.terminal.output import plural, print_json, say
from lithify.cli.text.setting_notes import creation_notes
from lithify.model.settings.table import SETTINGS


@verb("create")
@click.argument("topic_name", metavar="TOPIC")
@click.option("--partitions", type=int, default=1, show_default=True, metavar="N", help="Can only be increased later.")
@click.option(
    "--like",
    type=click.Choice(("kafka", "pulsar", "mapr")),
    default="kafka",
    show_default=True,
    help="The system whose defaults the settings have.",
)
@click.option("--config", type=PairType(), multiple=True, help="A setting; may be repeated.")
def create(
    invocation: Invocation, topic_name: str, partitions: int, like: str, config: tuple[tuple[str, str], ...]
) -> None:
    """Create a topic. An existing one is an error.

    Settings have Kafka's names and meaning; `lithify topic info` shows them all. Durations and sizes
    may have units: 7d, 30s, 128MiB.

    \b
    Examples:
      lithify topic create orders --partitions 4
      lithify topic create eu/customers --config min.compaction.lag.ms=1h
      lithify topic create events --config cleanup.policy=delete
      lithify topic create states --like pulsar --partitions 4
    """
    topic = invocation.open_lake().create_topic(
        topic_name, partitions, like=like, config=as_mapping(config, "--config")
    )
    info = topic.info()
    if invocation.json:
        print_json(info.to_json())
        return
    chosen = [f"{name}={info.config[name]}" for name in SETTINGS if name in dict(config)]
    say(f"{info.original_name}: created with {plural(info.partitions, 'partition')}{''.join(f', {c}' for c in chosen)}")
    for note in creation_notes(info.config):
        say(note)
