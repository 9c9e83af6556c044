"""`lithify topic info`."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.drawing import heading, results
from lithify.cli.terminal.output import show


@verb("info")
@parameters.topic
def info(invocation: Invocation, topic_name: str) -> None:
    """Show a topic: partitions, size, location, and every setting with where its value comes from.

    \b
    Examples:
      lithify topic info orders
      lithify topic info orders --json | jq .config
    """
    topic_info = invocation.open_whole_topic(topic_name).info()
    if invocation.printed(topic_info):
        return
    page = topic_info.page()
    show([heading(page.of), *results(page)])
