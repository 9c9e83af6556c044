"""The state of every log of a topic, as text."""

from __future__ import annotations

from lithify.cli.terminal.output import drawn, heading, wrapped
from lithify.reports.status import TopicStatus
from lithify.reports.tables.rounds import unread_groups
from lithify.reports.tables.space import space_line
from lithify.reports.tables.status import status_table, status_title


def status_lines(found: TopicStatus) -> list[str]:
    """A table of its logs; below each, notes on its figures."""
    title = f"{heading(found.topic)}  {status_title(found)}"
    unread = [] if found.groups_error is None else [unread_groups(found.groups_error)]
    return [title, *wrapped(space_line(found.space)), *unread, *drawn(status_table(found))]
