"""`lithify topic list`."""

from __future__ import annotations

from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import drawn, say, show
from lithify.cli.text.overview import no_topics
from lithify.reports.tables.topics import topic_table


@verb("list")
def list_topics(invocation: Invocation) -> None:
    """List the topics of the warehouse.

    \b
    Examples:
      lithify topic list
      lithify topic list --json | jq -r .topic
    """
    lake = invocation.open_lake()
    infos = lake.topic_infos()
    if invocation.printed(*infos):
        return
    if not infos:
        say(no_topics(lake.warehouse.store.where))
        return
    show(drawn(topic_table(infos)))
