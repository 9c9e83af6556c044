"""A table of results before it is drawn: on a terminal in columns, in a notebook as HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

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
