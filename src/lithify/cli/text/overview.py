"""The overview of a catalog as text: a line per topic, the worst first."""

from __future__ import annotations

from dataclasses import replace

from lithify.cli.terminal.output import drawn
from lithify.reports.overview import CatalogOverview
from lithify.reports.tables.overview import cleaner_notes, overview_summary, overview_table, standings
from lithify.reports.tables.wording import count

SHOWN = 50
"""Topics shown without `--all`."""


def overview_lines(found: CatalogOverview, *, everything: bool = False) -> list[str]:
    """A line per topic; nothing if there is none."""
    table = overview_table(found if everything else replace(found, topics=found.topics[:SHOWN]))
    return drawn(table) if table.items else []


def no_topics(where: str) -> str:
    """What is said of an empty warehouse; `where` is its place."""
    return f"no topics yet in {where} (`lithify topic create` makes one)"


def overview_notes(found: CatalogOverview, where: str, *, everything: bool = False) -> list[str]:
    """The number of topics not shown, the number in each state, and the cleaners."""
    if not found.topics:
        return [no_topics(where), *cleaner_notes(found)]
    notes = []
    hidden = () if everything else found.topics[SHOWN:]
    if hidden:
        left = CatalogOverview(hidden, found.now_ms).counts()
        notes.append(f"and {count(len(hidden))} more: {standings(left)} (`--all` shows them)")
    return [*notes, overview_summary(found), *cleaner_notes(found)]
