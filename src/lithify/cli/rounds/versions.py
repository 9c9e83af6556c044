"""`lithify versions`: the versions of a topic that can still be read, undone and verified against (C6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import columns, count, plural, say, show
from lithify.model.settings.units import format_bytes, format_time

if TYPE_CHECKING:
    from lithify.reports.status import VersionReport


@verb("versions")
@parameters.topic
def versions(invocation: Invocation, topic_name: str) -> None:
    """List the versions that are kept.

    A version is kept when a round, or another commit that removes segments, closes it: the newest
    versions.kept of them, newest first. Each can be read (`consume` and `table` with --version) and
    verified against, and its files are not deleted. After newer ones have replaced it, they stay at
    least until the time in FILES STAY UNTIL; then `lithify sweep` may delete them.

    \b
    Examples:
      lithify versions orders
      lithify versions orders --json | head -1 | jq .version
    """
    topic = invocation.open_whole_topic(topic_name)
    found = topic.versions()
    if invocation.printed(*found):
        return
    newest = topic.state()
    if found:
        viewed = any(version.view_records is not None for version in found)
        closing = ("CLOSED AT", "BY", "FILES STAY UNTIL")
        header = ("VERSION", "RECORDS", "SIZE", *(("VIEW",) if viewed else ()), *closing)
        rows = [_row(version, viewed=viewed) for version in found]
        show(columns(header, rows, left=closing, wrap=False))
    kept = plural(len(found), "earlier version")
    say(f"{topic.name}: {kept} kept, at most {newest.settings.versions_kept} are; the newest is {newest.version}")


def _row(version: VersionReport, *, viewed: bool) -> tuple[str, ...]:
    view = "-" if version.view_records is None else count(version.view_records)
    return (
        count(version.version),
        count(version.records),
        format_bytes(version.bytes),
        *((view,) if viewed else ()),
        format_time(version.closed_ms)[:19],
        version.verb.value,
        format_time(version.files_stay_until_ms)[:19],
    )
