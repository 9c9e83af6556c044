"""Pages as HTML, for notebooks: every text is escaped, and the number of rows is bounded.

Names, keys and errors may come from an attacker, and a notebook runs the scripts of the HTML that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, TypeVar

from lithify.redaction import redacted
from lithify.reports.notebook.pages import Page, page_of, page_of_several
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import count, visible

ROWS_SHOWN = 100
"""Rows of a table, and lines below it: a topic may have 10,000 logs."""

T = TypeVar("T")


def html_of(report: Any) -> str:
    """A report as its verb prints it."""
    return page_html(page_of(report))


def html_of_several(reports: Sequence[Any]) -> str:
    """Reports as the verb prints them that lists them: as one table, or one after the other."""
    if not reports:
        return "<p>none</p>"
    page = page_of_several(reports)
    if page is not None:
        return page_html(page)
    shown, more = _bounded(reports)
    return "".join([*map(html_of, shown), *_more(more)])


def text_html(text: str) -> str:
    """A text in HTML: escaped, without passwords, and with what is not printable shown as Python escapes it."""
    return escape(visible(redacted(text)))


def page_html(page: Page) -> str:
    """A page, with at most `ROWS_SHOWN` of its rows and of its lines."""
    shown, more = _bounded(page.lines)
    return "".join(
        [
            '<div class="lithify">',
            f"<p><b>{text_html(page.title)}</b></p>",
            *([] if page.table is None or not page.table.items else _table(page.table)),
            *(f"<p>{text_html(line)}</p>" for line in shown),
            *_more(more),
            "</div>",
        ]
    )


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
