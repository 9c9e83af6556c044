"""`lithify stream list` (C56)."""

from __future__ import annotations

from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import columns, count, say, show


@verb("list")
def list_streams(invocation: Invocation) -> None:
    """List the streams of the warehouse, and what their topics keep.

    \b
    Examples:
      lithify stream list
      lithify stream list --json | jq -r .stream
    """
    infos = invocation.open_lake().streams()
    if invocation.printed(*infos):
        return
    if not infos:
        say("no streams yet (`lithify stream create` makes one)")
        return
    rows = [(info.stream, count(info.topics), info.keeps) for info in infos]
    show(columns(("STREAM", "TOPICS", "KEEPS"), rows, left=("STREAM", "KEEPS")))
