"""Printing: results on stdout, everything else on stderr, tables for people and JSON for scripts."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from lithify.model.units import format_duration, format_time


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on a line of its own."""
    click.echo(json.dumps(value))


def say(text: str) -> None:
    """A line for the person at the terminal: stderr, so that it never mixes with results."""
    click.echo(text, err=True)


def say_error(text: str) -> None:
    """What failed, on one line."""
    say(f"{styled('error:', fg='red', bold=True)} {' '.join(text.split())}")


def styled(text: str, **style: Any) -> str:
    """Text with colour or weight; plain with `NO_COLOR`. Pipes and files get it plain as well."""
    return text if os.environ.get("NO_COLOR") else click.style(text, **style)


def heading(text: str) -> str:
    return styled(text, bold=True)


def faint(text: str) -> str:
    return styled(text, dim=True)


def width() -> int:
    """Columns of the terminal, or 80."""
    return shutil.get_terminal_size((80, 24)).columns


def columns(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[str] = (), wrap: bool = True
) -> list[str]:
    """Lines of a table: numbers to the right, the columns named in `left` to the left.

    The last column is wrapped to the terminal if it is a left one, unless it is to be copied.
    """
    rows = [list(row) for row in rows]
    widths = [max(len(row[i]) for row in [list(header), *rows]) for i in range(len(header))]
    wraps = wrap and header[-1] in left
    if wraps:
        widths[-1] = max(20, width() - sum(widths[:-1]) - 2 * len(widths[:-1]))

    def line(cells: Sequence[str]) -> str:
        pairs = zip(header, cells, widths, strict=True)
        return "  ".join(c.ljust(w) if name in left else c.rjust(w) for name, c, w in pairs).rstrip()

    lines = [heading(line(header))]
    for row in rows:
        last = textwrap.wrap(row[-1], widths[-1]) or [""] if wraps else [row[-1]]
        lines.append(line([*row[:-1], last[0]]))
        lines += [line([*[""] * (len(row) - 1), more]) for more in last[1:]]
    return lines


def fields(pairs: Iterable[tuple[str, str]], *, indent: str = "  ") -> list[str]:
    """Lines of `name  value`, the values below each other, wrapped to the terminal."""
    pairs = list(pairs)
    name_width = max((len(name) for name, _ in pairs), default=0)
    lines = []
    for name, value in pairs:
        room = max(20, width() - len(indent) - name_width - 2)
        first, *more = textwrap.wrap(value, room, break_on_hyphens=False) or [""]
        lines.append(f"{indent}{faint(name.ljust(name_width))}  {first}")
        lines += [f"{indent}{' ' * name_width}  {line}" for line in more]
    return lines


def count(number: int) -> str:
    """1234567 as `1,234,567`."""
    return f"{number:,}"


def change(before: int, after: int, text: Callable[[int], str]) -> str:
    """`3 → 4`, or only the number if it is the same."""
    return text(after) if before == after else f"{text(before)} → {text(after)}"


def plural(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def when(time_ms: int, now_ms: int) -> str:
    """A time, and how far it is from now."""
    distance = (
        f"in {format_duration(time_ms - now_ms)}" if time_ms > now_ms else f"{format_duration(now_ms - time_ms)} ago"
    )
    return f"{format_time(time_ms)} ({distance})"


def on_terminal() -> bool:
    """Whether progress may be drawn: stderr is a terminal."""
    return sys.stderr.isatty()
