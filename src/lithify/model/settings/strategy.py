"""`compaction.strategy` as a value: what decides, before the offset, which record of a key is the latest (C10).

A strategy whose order is a whole number in a column of every record is added here alone. One of another kind is a
class beside these two, and mypy then names the four places that take an order: from a record, from columns of Arrow,
from columns of Spark, and for a tombstone that has to win.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Strategy = Literal["offset", "timestamp", "header"]


@dataclass(frozen=True, slots=True)
class ByColumn:
    """The number in a field of `Record`, which is a column of that name in segments; every record has one."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class ByHeader:
    """The number in the last header of that name; a record may have none."""

    name: str

    def __str__(self) -> str:
        return f"header:{self.name}"


Order = ByColumn | ByHeader


def order_of_strategy(strategy: Strategy, header: str) -> Order | None:
    """None if the offset decides alone. `header` is that of `compaction.strategy.header`."""
    match strategy:
        case "offset":
            return None
        case "timestamp":
            return ByColumn("timestamp")
        case "header":
            return ByHeader(header)
