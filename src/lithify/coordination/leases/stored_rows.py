"""Rows as the model takes them: anything else in the place of a number is an error that names the row.

PostgreSQL stores what a column is for. SQLite stores anything in any column, and people and other programs may write
to either, including numbers that no time, offset or rate can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Integer, Table

from lithify.errors import CoordinationError

TEXT_CHARACTERS = 60
"""How much of a value an error shows."""


def checked(rows: Iterable[Any], table: Table) -> list[Any]:
    """The rows, each with columns of `table`. Raises `CoordinationError` for a value that the column is not for."""
    all_rows = list(rows)
    if all_rows:
        columns = [table.columns[name] for name in all_rows[0]._fields]
        for row in all_rows:
            for column, value in zip(columns, row, strict=True):
                if not _fits(value, column):
                    raise unreadable(table, row._asdict(), column.name)
    return all_rows


def unreadable(table: Table, row: Mapping[str, Any], column: str) -> CoordinationError:
    """The error for a row whose value in one column cannot be."""
    key = ", ".join(f"{c.name} {_shown(row[c.name])}" for c in table.primary_key if c.name in row)
    return CoordinationError(
        f"the row of {table.name} with {key} cannot be read: its {column} is {_shown(row[column])}",
        hint="correct or delete that row: Lithify did not write it",
    )


def _fits(value: Any, column: Column[Any]) -> bool:
    if value is None:
        return bool(column.nullable)
    if isinstance(column.type, Boolean):
        return isinstance(value, bool)
    if isinstance(column.type, Integer | BigInteger):
        return isinstance(value, int) and value >= 0
    return isinstance(value, str)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"
