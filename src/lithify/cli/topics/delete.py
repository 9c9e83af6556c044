"""`lithify topic delete`."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.output import print_json, say, show
from lithify.errors import UnknownTopicError
from lithify.model.settings.units import plural


@verb("delete")
@parameters.topic
@parameters.if_exists
@click.option("--yes", is_flag=True, help="Delete the topic. Without --yes, only show the number of records.")
def delete(invocation: Invocation, topic_name: str, if_exists: bool, yes: bool) -> None:
    """Delete a topic and its files irreversibly. Without --yes nothing is changed.

    Files of other programs in its folder are not deleted, and are listed.

    \b
    Examples:
      lithify topic delete orders --yes
      lithify topic delete orders --if-exists --yes
    """
    try:
        topic_info = invocation.open_whole_topic(topic_name).info()
    except UnknownTopicError:
        if not if_exists:
            raise
        if invocation.json:
            print_json({"topic": topic_name, "deleted": False, "records": 0, "left": []})
        else:
            say(f"{topic_name}: there is no such topic; nothing was deleted")
        return
    if not yes:
        refuse(
            f"{topic_info.original_name}: nothing was deleted",
            f"deletes the topic and its {plural(topic_info.records, 'record')} irreversibly",
        )
    left = invocation.open_lake().delete_topic(topic_name)
    if invocation.json:
        print_json({"topic": topic_info.topic, "deleted": True, "records": topic_info.records, "left": list(left)})
        return
    say(f"{topic_info.original_name}: deleted with {plural(topic_info.records, 'record')}")
    if left:
        say(
            f"{plural(len(left), 'file')} in its folder {'does' if len(left) == 1 else 'do'} not belong to Lithify "
            f"and {'remains' if len(left) == 1 else 'remain'}:"
        )
        for path in left:
            show([path])
