"""Pages as HTML, for notebooks: every text is escaped, and the number of rows is bounded.

Names, keys and errors may come from an attacker, and a notebook runs the scripts of the HTML that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, TypeVar

from lithify.errors.redaction import redacted
from lithify.reports.page import Page, Section, Table
from lithify.reports.page.wording import count, visible

ROWS_SHOWN = 100
"""Rows of a table, and lines below it: a topic may have 10,000 logs."""

T = TypeVar("T")


def pages_html(items: Sequence[T], page_of: Callable[[T], Page]) -> str:
    """The pages of at most `ROWS_SHOWN` items, one after the other."""
    shown, more = _bounded(items)
    return "".join([*(page_html(page_of(item)) for item in shown), *_more(more)])


def text_html(text: str) -> str:
    """A text in HTML: escaped, without passwords, and with what is not printable shown as Python escapes it."""
    return escape(visible(redacted(text)))


def page_html(page: Page) -> str:
    """A page, with at most `ROWS_SHOWN` of its rows and of its lines."""
    title = ": ".join(part for part in (page.of, page.title) if part)
    table = _facts(page.sections) if page.table is None else page.table
    shown, more = _bounded(page.lines)
    return "".join(
        [
            '<div class="lithify">',
            f"<p><b>{text_html(title)}</b></p>",
            *(_table(table) if table.items else ()),
            *(f"<p>{text_html(line.text)}</p>" for line in shown),
            *_more(more),
            "</div>",
        ]
    )


def _facts(sections: Sequence[Section]) -> Table[tuple[str, str]]:
    """Values by name."""
    facts = [fact for section in sections for fact in section.facts]
    return Table(("NAME", "VALUE"), facts, lambda fact: fact, left=("NAME", "VALUE"))


def _table(table: Table[Any]) -> Iterator[str]:
    shown, more = _bounded(table.items)
    aligned = ["left" if name in table.left else "right" for name in table.header]
    yield "<table><thead><tr>"
    yield from (_cell("th", name, side) for name, side in zip(table.header, aligned, strict=True))
    yield "</tr></thead><tbody>"
    for item in shown:
        yield "<tr>"
        yield from (_cell("td", text, side) for text, side in zip(table.row(item), aligned, strict=True))
        yield "</tr>"
        drawing = table.drawing(item)
        for note in (*([drawing] if drawing else []), *table.notes(item)):
            yield f'<tr><td colspan="{len(table.header)}" style="text-align:left">{text_html(note)}</td></tr>'
    yield "</tbody></table>"
    yield from _more(more)


def _cell(tag: str, text: str, side: str) -> str:
    return f'<{tag} style="text-align:{side}">{text_html(text)}</{tag}>'


def _bounded(items: Sequence[T]) -> tuple[Sequence[T], int]:
    """The first of them, and how many more there are."""
    return items[:ROWS_SHOWN], max(0, len(items) - ROWS_SHOWN)


def _more(number: int) -> list[str]:
    return [f"<p>and {count(number)} more</p>"] if number else []
