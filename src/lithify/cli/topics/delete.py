"""`lithify topic delete`."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.output import plural, print_json, say, show


@verb("delete")
@parameters.topic
@click.option("--yes", is_flag=True, help="Delete it. Without it the number of records is shown.")
def delete(invocation: Invocation, topic_name: str, yes: bool) -> None:
    """Delete a topic and its files irreversibly. Without --yes nothing is changed.

    Files of other programs in its folder stay, and are listed.

    \b
    Example:
      lithify topic delete orders --yes
    """
    found = invocation.open_whole_topic(topic_name).info()
    if not yes:
        refuse(
            f"{found.original_name}: nothing was deleted",
            f"deletes the topic and its {plural(found.records, 'record')} irreversibly",
        )
    left = invocation.open_lake().delete_topic(topic_name)
    if invocation.json:
        print_json({"topic": found.topic, "deleted": True, "records": found.records, "left": list(left)})
        return
    say(f"{found.original_name}: deleted with {plural(found.records, 'record')}")
    if left:
        say(f"{plural(len(left), 'file')} in its folder {'is' if len(left) == 1 else 'are'} not Lithify's, and left:")
        for path in left:
            show([path])
