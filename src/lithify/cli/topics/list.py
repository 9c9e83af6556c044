"""`lithify topic list`."""

from __future__ import annotations

from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import print_page, say
from lithify.errors import LithifyError
from lithify.reports.topics import TopicInfo, no_topics


@verb("list")
def list_topics(invocation: Invocation) -> int:
    """List the topics of the warehouse.

    A topic that cannot be read is an error on stderr; the others are listed, and the exit code is 1.

    \b
    Examples:
      lithify topic list
      lithify topic list --json | jq -r .topic
    """
    lake = invocation.open_lake()
    unreadable: dict[str, LithifyError] = {}
    infos = lake.topic_infos(unreadable.__setitem__)
    if not invocation.printed(*infos) and infos:
        print_page(TopicInfo.listed(infos))
    elif not infos and not unreadable and not invocation.json:
        say(no_topics(lake.where))
    for name, error in unreadable.items():
        invocation.say_failure(error.message, error.hint, error.code, 1, topic=name)
    return 1 if unreadable else 0
