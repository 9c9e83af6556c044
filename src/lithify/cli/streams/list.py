"""`lithify stream list` (C56)."""

from __future__ import annotations

from collections.abc import Sequence

from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import print_page, say
from lithify.reports.streams import StreamInfo


@verb("list")
def list_streams(invocation: Invocation) -> int:
    """List the streams of the warehouse, and what their topics keep.

    \b
    Examples:
      lithify stream list
      lithify stream list --json | jq -r .stream
    """
    infos = invocation.open_lake().streams()
    invalid = [info for info in infos if info.error is not None]
    if not invocation.printed(*infos):
        _show(infos)
    for info in invalid:
        invocation.say_error(str(info.error), info.error_code, stream=info.stream)
    return 1 if invalid else 0


def _show(infos: Sequence[StreamInfo]) -> None:
    if not infos:
        say("no streams yet (`lithify stream create` makes one)")
        return
    print_page(StreamInfo.listed(infos))
