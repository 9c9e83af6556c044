"""`lithify versions`: the versions of a topic that can still be read, undone and verified against (C6)."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import print_page, say
from lithify.model.settings.units import plural
from lithify.reports.topics import VersionReport


@verb("versions")
@parameters.topic
def versions(invocation: Invocation, topic_name: str) -> None:
    """List the retained versions.

    A version is retained when a round, or another commit that removes segments, closes it: the newest
    versions.kept of them, newest first. Each can be read (`consume` and `table` with --version) and
    verified against, and its files are not deleted. After newer ones have replaced it, they remain at
    least until the time in FILES REMAIN UNTIL; then `lithify sweep` may delete them.

    \b
    Examples:
      lithify versions orders
      lithify versions orders --json | head -1 | jq .version
    """
    topic = invocation.open_whole_topic(topic_name)
    reports = topic.versions()
    if invocation.printed(*reports):
        return
    newest = topic.state()
    if reports:
        print_page(VersionReport.listed(reports))
    retained, most = plural(len(reports), "earlier version"), newest.settings.versions_kept
    say(f"{topic.name}: {retained} retained, at most {most} are; the newest is {newest.version}")
