"""Printing: results on stdout, everything else on stderr, tables for people and JSON for scripts.

Verbs print through this module only, and no text can control a terminal or begin a line of its own:
names, settings, paths and errors may come from an attacker (docs/security.md). Unprintable characters are
shown as Python and JSON escape them; Lithify's own styles are distinguished from escapes in the text.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click

from lithify.redaction import redacted
from lithify.reports.tables.table import Table
from lithify.reports.tables.wording import visible

_ESCAPE = "\x1b"
_OUR_ESCAPE = chr(0xF0000 + int.from_bytes(os.urandom(2)) % 0xFFFE)
"""Stands for the escape of a style until it is printed; random in each process, so that no input can contain it."""
_STEERING = re.compile(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Characters that JSON allows and a terminal acts on or hides: controls, direction marks, zero-width characters."""

_above: list[Callable[[str], None]] = []
"""What prints above the bars that the terminal shows now."""


def line(text: str) -> str:
    """A line as it is written to a terminal."""
    return _inert(redacted(text)).replace(_OUR_ESCAPE, _ESCAPE)


def _inert(text: str) -> str:
    """`visible`, except for the styles that this module added."""
    return _OUR_ESCAPE.join(map(visible, text.split(_OUR_ESCAPE)))


def show(lines: Iterable[str]) -> None:
    """Results for people: on stdout, each of `lines` as one line."""
    _print("\n".join(map(line, lines)))


def put(data: bytes) -> None:
    """Records on stdout as they are; `flush` sends them."""
    sys.stdout.buffer.write(data)


def flush() -> None:
    """Sends what was printed on stdout, so that a program that reads it has it now."""
    sys.stdout.flush()


def print_json(value: Mapping[str, Any], *, err: bool = False) -> None:
    """One JSON object on a line of its own; on stderr without secrets."""
    _print(inert_json(json.dumps(_redacted(value) if err else value)), err=err)


def inert_json(text: str) -> str:
    """The same JSON, with characters escaped that a terminal acts on."""
    return _STEERING.sub(lambda found: json.dumps(found[0])[1:-1] if found[0] != "\x7f" else "\\u007f", text)


def say(text: str) -> None:
    """Prints a line for the user, on stderr, so that it never mixes with results."""
    _print(line(text), err=True)


def say_json(value: Mapping[str, Any]) -> None:
    """Prints an object on a line of stderr, for programs that want to know what people are told."""
    _print(inert_json(json.dumps(_redacted(value), ensure_ascii=False)), err=True)


def _redacted(value: Any) -> Any:
    """A JSON value without secrets in its texts."""
    match value:
        case str():
            return redacted(value)
        case Mapping():
            return {name: _redacted(one) for name, one in value.items()}
        case list() | tuple():
            return [_redacted(one) for one in value]
        case _:
            return value


def _print(text: str, *, err: bool = False) -> None:
    if _above and (sys.stderr if err else sys.stdout).isatty():
        _above[-1](text)
    else:
        click.echo(text, err=err)


@contextmanager
def printing_above(print_above: Callable[[str], None]) -> Iterator[None]:
    """Lets this print what is for a terminal, which shows bars meanwhile, above these."""
    _above.append(print_above)
    try:
        yield
    finally:
        _above.remove(print_above)


def say_lines(text: str) -> None:
    """Several lines, for tracebacks: lines after the first are indented, so that none looks like Lithify's own."""
    for number, one in enumerate(text.splitlines()):
        say(f"  {one}" if number else one)


class _Said(logging.Handler):
    """Prints what is logged as lines for the user."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def say_warnings(log: logging.Logger) -> None:
    """Prints what this part of Lithify logs from now on, as other lines for the user."""
    if not any(isinstance(handler, _Said) for handler in log.handlers):
        log.addHandler(_Said(logging.WARNING))
        log.propagate = False  # with --debug the root prints all messages


def say_error(text: str, code: str | None) -> None:
    """Prints an error on one line: `error[UnknownTopic]: ...`. Only errors that earlier versions noted have no code."""
    name = "error:" if code is None else f"error[{code}]:"
    say(f"{styled(name, fg='red', bold=True)} {' '.join(text.split())}")


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
    limited = sys.stdout.isatty() or (given.isdecimal() and int(given) > 0)
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
    widths = [max(len(row[i]) for row in [list(header), *rows]) for i in range(len(header))]
    wraps, between = wrap and header[-1] in left, 2 * (len(widths) - 1)
    if wraps:
        widths[-1] = min(widths[-1], max(LEAST_WRAPPED, width() - sum(widths[:-1]) - between))
    if wrap and sum(widths) + between > width():
        return [], [_folded(header, row, left) for row in rows]

    def row_of(cells: Sequence[str]) -> str:
        pairs = zip(header, cells, widths, strict=True)
        return "  ".join(c.ljust(w) if name in left else c.rjust(w) for name, c, w in pairs).rstrip()

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
        if lines and len(lines[-1]) + 2 + len(pair) <= room:
            lines[-1] += f"  {pair}"
        else:
            lines += _lines(pair, room)
    return [heading(title if name in left else f"{name} {title}"), *(_FOLD + text for text in lines)]


_FOLD = "  "


def _lines(text: str, room: int) -> list[str]:
    """A text in lines of at most so many columns, unless a word has more: no word is taken apart."""
    return textwrap.wrap(text, max(1, room), break_long_words=False, break_on_hyphens=False) or [""]


def drawn(table: Table[Any]) -> list[str]:
    """Lines of a table; below each row its drawing, and what is said of its item."""
    notes = [[*_fitting(table.drawing(item)), *_below(table.notes(item))] for item in table.items]
    first, blocks = _blocks(table.header, table.rows, table.left, wrap=table.wrap)
    return [*first, *(text for block, said in zip(blocks, notes, strict=True) for text in (*block, *said))]


_INDENT = "     "


def _fitting(drawing: str) -> list[str]:
    return [_INDENT + drawing] if drawing and len(_INDENT + drawing) <= width() else []


def _below(notes: Sequence[str]) -> list[str]:
    return [_INDENT + text for note in notes for text in _lines(note, width() - len(_INDENT))]


def wrapped(text: str) -> list[str]:
    """A text as lines of the terminal."""
    return _lines(text, width()) if text else []


def fields(pairs: Iterable[tuple[str, str]], *, indent: str = "  ") -> list[str]:
    """Lines of `name  value`, the values below each other, wrapped to the terminal."""
    pairs = list(pairs)
    name_width = max((len(name) for name, _ in pairs), default=0)
    lines = []
    for name, value in pairs:
        room = max(20, width() - len(indent) - name_width - 2)
        first, *more = _lines(value, room)
        lines.append(f"{indent}{faint(name.ljust(name_width))}  {first}")
        lines += [f"{indent}{' ' * name_width}  {line}" for line in more]
    return lines


def on_terminal() -> bool:
    """Whether progress may be drawn: stderr is a terminal."""
    return sys.stderr.isatty()
