"""Pages as lines of a terminal: columns within its width, words in colour.

No text can control a terminal or begin a line of its own: names, settings, paths and errors may come from an attacker
(docs/understand/security.md). Unprintable characters are shown as Python escapes them; Lithify's own styles are
distinguished from escapes in the text.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import click

from lithify.errors.redaction import redacted
from lithify.reports.page import Accent, Line, Outlet, Page, Section, Table
from lithify.reports.page.wording import visible

_ESCAPE = "\x1b"
_OUR_ESCAPE = chr(0xF0000 + int.from_bytes(os.urandom(2)) % 0xFFFE)
"""Stands for the escape of a style until it is printed; random in each process, so that no input can contain it."""


def line(text: str) -> str:
    """A line as it is written to a terminal."""
    return _inert(redacted(text)).replace(_OUR_ESCAPE, _ESCAPE)


def _inert(text: str) -> str:
    """`visible`, except for the styles that this module added."""
    return _OUR_ESCAPE.join(map(visible, text.split(_OUR_ESCAPE)))


def styled(text: str, **style: Any) -> str:
    """Text with colour or weight; plain with `NO_COLOR`, in pipes and in files."""
    plain = _inert(text)
    return plain if os.environ.get("NO_COLOR") else click.style(plain, **style).replace(_ESCAPE, _OUR_ESCAPE)


def heading(text: str) -> str:
    return styled(text, bold=True)


def faint(text: str) -> str:
    return styled(text, dim=True)


def width() -> int:
    """Columns of the terminal; without one, where programs take lines apart, there is no limit but `$COLUMNS`."""
    given = os.environ.get("COLUMNS", "")
    limited = sys.stdout.isatty() or (given.isdecimal() and given.strip("0") != "")
    return shutil.get_terminal_size((80, 24)).columns if limited else sys.maxsize


def columns(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[str] = (), wrap: bool = True
) -> list[str]:
    """Lines of a table: columns named in `left` are aligned left, others right.

    The last column, if it is a left one, is wrapped to the terminal; not without `wrap`, for text to copy. A table
    that is wider nevertheless is folded: each row becomes a few lines of names and values.
    """
    first, blocks = _blocks(header, rows, left, wrap=wrap)
    return [*first, *(text for block in blocks for text in block)]


_Blocks = tuple[list[str], list[list[str]]]
"""The heading, if there is one, and the lines of each row."""


def _blocks(header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[str], *, wrap: bool) -> _Blocks:
    rows = [[_inert(cell) for cell in row] for row in rows]
    widths = [max(room_of(row[i]) for row in [list(header), *rows]) for i in range(len(header))]
    wraps, between = wrap and header[-1] in left, 2 * (len(widths) - 1)
    if wraps:
        widths[-1] = min(widths[-1], max(LEAST_WRAPPED, width() - sum(widths[:-1]) - between))
    if wrap and sum(widths) + between > width():
        return [], [_folded(header, row, left) for row in rows]

    def row_of(cells: Sequence[str]) -> str:
        pairs = zip(header, cells, widths, strict=True)
        return "  ".join(_padded(cell, room, left=name in left) for name, cell, room in pairs).rstrip()

    blocks = []
    for row in rows:
        last = _lines(row[-1], widths[-1]) if wraps else [row[-1]]
        blocks.append([row_of([*row[:-1], last[0]]), *(row_of([*[""] * (len(row) - 1), more]) for more in last[1:])])
    return [heading(row_of(header))], blocks


LEAST_WRAPPED = 20
"""Columns that a wrapped text needs at least."""


def _folded(header: Sequence[str], row: Sequence[str], left: Sequence[str]) -> list[str]:
    """A row as `NAME value` pairs, which are not taken apart; the first one is the title of the others."""
    (name, title), *pairs = zip(header, row, strict=True)
    lines: list[str] = []
    room = width() - len(_FOLD)
    for pair in (f"{name} {value}" for name, value in pairs if value.strip()):
        if lines and room_of(lines[-1]) + 2 + room_of(pair) <= room:
            lines[-1] += f"  {pair}"
        else:
            lines += _lines(pair, room)
    return [heading(title if name in left else f"{name} {title}"), *(_FOLD + text for text in lines)]


_FOLD = "  "


def _lines(text: str, room: int) -> list[str]:
    """A text in lines of at most `columns` columns, unless a word has more: words are not divided.

    Without secrets: half of one is not recognized when its line is printed.
    """
    lines: list[list[str]] = [[]]
    taken, blank = 0, ""
    for word in re.split(r"(\s+)", redacted(text).rstrip()):
        if not word.strip():
            blank = " " * len(word)
            continue
        if lines[-1] and taken + len(blank) + room_of(word) > room:
            lines.append([])
            taken, blank = 0, ""
        lines[-1].append(blank + word)
        taken += len(blank) + room_of(word)
    return ["".join(words) for words in lines]


def room_of(text: str) -> int:
    """The columns that a text takes on a terminal: two for a letter of Chinese, none for an accent on another one."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(one) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def _padded(cell: str, room: int, *, left: bool) -> str:
    blanks = " " * (room - room_of(cell))
    return cell + blanks if left else blanks + cell


def results(page: Page) -> list[str]:
    """The table or the sections of a page, and its lines on stdout."""
    sections = [text for section in page.sections for text in _section(section)]
    return [*drawn(page.table), *sections, *texts(page, Outlet.RESULT)]


def texts(page: Page, outlet: Outlet) -> list[str]:
    """The lines that a page has for it, with the colours of their words."""
    return [accented(line) for line in page.lines if line.outlet is outlet]


def accented(line: Line) -> str:
    return "".join(_accent(part) if isinstance(part, Accent) else part for part in line.parts)


def _accent(word: Accent) -> str:
    if word.faint:
        return faint(word.text)
    return word.text if word.colour is None else styled(word.text, fg=word.colour, bold=word.bold or None)


def _section(section: Section) -> list[str]:
    if not section.title:
        return fields(section.facts)
    return [faint(f"  {section.title}"), *fields(section.facts, indent="    ")]


def drawn(table: Table[Any] | None) -> list[str]:
    """Lines of a table; below each row its drawing, and what is said of its item."""
    if table is None:
        return []
    notes = [[*_fitting(table.drawing(item)), *_below(table.notes(item))] for item in table.items]
    first, blocks = _blocks(table.header, table.rows, table.left, wrap=table.wrap)
    return [*first, *(text for block, lines in zip(blocks, notes, strict=True) for text in (*block, *lines))]


_INDENT = "     "


def _fitting(drawing: str) -> list[str]:
    return [_INDENT + drawing] if drawing and room_of(_INDENT + drawing) <= width() else []


def _below(notes: Sequence[str]) -> list[str]:
    return [_INDENT + text for note in notes for text in _lines(note, width() - len(_INDENT))]


def wrapped(text: str) -> list[str]:
    """A text as lines of the terminal."""
    return _lines(text, width()) if text else []


def fields(pairs: Iterable[tuple[str, str]], *, indent: str = "  ") -> list[str]:
    """Lines of `name  value`, the values below each other, wrapped to the terminal."""
    pairs = list(pairs)
    name_width = max((room_of(name) for name, _ in pairs), default=0)
    lines = []
    for name, value in pairs:
        room = max(20, width() - len(indent) - name_width - 2)
        first, *more = _lines(value, room)
        lines.append(f"{indent}{faint(_padded(name, name_width, left=True))}  {first}")
        lines += [f"{indent}{' ' * name_width}  {line}" for line in more]
    return lines
