"""A result as a page before it is drawn: on a terminal in columns, in a notebook as HTML.

RoundReport.page() ──► of, title   orders: round
                       table       a row for each log           as `lithify compact` prints it
                       lines       orders: 7 → 4 records, ...

Both draw the same page. They differ in what is around it: a program prints results on stdout and says the rest on
stderr, errors with their codes, and a notebook has one place for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """Rows of the same columns, each made of one item only when it is drawn: a topic may have 10,000 logs."""

    header: Sequence[str]
    items: Sequence[T]
    row: Callable[[T], Sequence[str]]
    left: Sequence[str] = ()
    """The columns that are aligned left."""
    notes: Callable[[T], Sequence[str]] = lambda _item: ()
    """What is said of an item below its row."""
    drawing: Callable[[T], str] = lambda _item: ""
    """A line below its row, above the notes; only where it fits, as it means nothing when it is wrapped."""
    wrap: bool = True
    """Whether the last column may be wrapped, if it is a left one; not text to copy."""

    @property
    def rows(self) -> list[Sequence[str]]:
        return [self.row(item) for item in self.items]


@dataclass(frozen=True, slots=True)
class Section:
    """Values by name; `title` is empty for the first ones of a page."""

    title: str
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Accent:
    """A word that a terminal shows in a colour, or faintly."""

    text: str
    colour: str | None = None
    bold: bool = False
    faint: bool = False


class Outlet(Enum):
    """Where a program has a line; a notebook has all of them below the table."""

    RESULT = auto()
    """On stdout."""
    NOTICE = auto()
    """On stderr."""
    ASIDE = auto()
    """Where the verb says it in its own way: an error with its code, or what it asks of the person."""


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence about the whole result."""

    outlet: Outlet
    parts: tuple[str | Accent, ...]

    @property
    def text(self) -> str:
        return "".join(part.text if isinstance(part, Accent) else part for part in self.parts)


def result(*parts: str | Accent) -> Line:
    return Line(Outlet.RESULT, parts)


def notice(*parts: str | Accent) -> Line:
    return Line(Outlet.NOTICE, parts)


def aside(text: str) -> Line:
    return Line(Outlet.ASIDE, (text,))


@dataclass(frozen=True, slots=True)
class Page:
    """What is shown of a result, from the top."""

    of: str
    """What it is about, such as a topic; empty if the title says that."""
    title: str = ""
    table: Table[Any] | None = None
    lines: Sequence[Line] = ()
    sections: Sequence[Section] = ()
