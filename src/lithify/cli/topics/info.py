"""`lithify topic info`."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import faint, fields, heading, show
from lithify.reports.status import TopicInfo
from lithify.reports.tables.topics import topic_facts, topic_settings


@verb("info")
@parameters.topic
def info(invocation: Invocation, topic_name: str) -> None:
    """Show a topic: partitions, size, location, and every setting with where its value comes from.

    \b
    Examples:
      lithify topic info orders
      lithify topic info orders --json | jq .config
    """
    found = invocation.open_whole_topic(topic_name).info()
    if invocation.printed(found):
        return
    show([heading(found.original_name), *fields(topic_facts(found)), faint("  settings"), *_settings(found)])


def _settings(found: TopicInfo) -> list[str]:
    return fields(topic_settings(found), indent="    ")
