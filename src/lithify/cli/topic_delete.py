"""`lithify topic delete`."""

from __future__ import annotations

import click

from lithify.cli.consent import refuse
from lithify.cli.invocation import Invocation, verb
from lithify.cli.output import plural, print_json, say


@verb("delete")
@click.argument("topic_name", metavar="TOPIC")
@click.option("--yes", is_flag=True, help="Really delete it.")
def delete(invocation: Invocation, topic_name: str, yes: bool) -> None:
    """Delete a topic and its files, for good. Without --yes nothing is changed.

    \b
    Example:
      lithify topic delete orders --yes
    """
    found = invocation.open_whole_topic(topic_name).info()
    if not yes:
        refuse(
            f"{found.original_name}: nothing was deleted",
            f"deletes the topic and its {plural(found.records, 'record')} for good",
        )
    invocation.open_lake().delete_topic(topic_name)
    if invocation.json:
        print_json({"topic": found.topic, "deleted": True, "records": found.records})
    else:
        say(f"{found.original_name}: deleted with {plural(found.records, 'record')}")
