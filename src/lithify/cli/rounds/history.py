"""`lithify history`: the reports of past rounds, newest first (C42)."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import print_page, say
from lithify.reports.rounds.round import RoundReport


@verb("history")
@parameters.topic
def history(invocation: Invocation, topic_name: str) -> None:
    """Show the latest rounds of a topic, newest first.

    At most 100. With --json each is the output of `lithify compact --json`, as it was just before
    the commit.

    \b
    Examples:
      lithify history orders
      lithify history orders --json | head -1 | jq .logs
    """
    topic = invocation.open_whole_topic(topic_name)
    reports = topic.history()
    if invocation.printed(*reports):
        return
    if not reports:
        say(f"{topic.name}: no round has changed anything yet (`lithify compact {topic.name}` runs one)")
        return
    print_page(RoundReport.listed(reports))
    if any(report.now_given for report in reports):
        say("* judged as of that time, which was set with --now")
