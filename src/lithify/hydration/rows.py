"""The rows of a hydrated table, and the table as `hydrating.py` needs it.

    partition, key, value, offset, timestamp, headers     primary key (partition, key)

`headers` is a JSON list of `[name, value]`: the value as text if it is UTF-8, as `{"base64": "..."}` if it is not, or
null. Beside the tables of topics, a file has `lithify_positions`: by table the position of its consumer, as in a
file of cursors, empty at first, and the strategy that it is filled by. `lithify_orders` is for strategies by which
later records may lose to earlier ones: it has the order of what won each key, or deleted it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from lithify.errors import ConflictError, RefusedError, UnusableEnvironmentError
from lithify.model.record import Header, Record
from lithify.service.snapshot.changes import LogKey

POSITIONS, ORDERS = "lithify_positions", "lithify_orders"

_SHOWN_CHARACTERS = 60

FileId = tuple[int, int]
"""Device and inode."""
Row = tuple[int, bytes, bytes | None, int | None, int | None, str]


class BusyError(Exception):
    """Another program has the file; a later try may succeed."""


@dataclass(frozen=True, slots=True)
class Change:
    """One transaction: rows to put and keys to delete, all of different keys, and the positions before and after it.

    `orders` are those of both, empty if the offset decides.
    """

    rows: Sequence[Row]
    deleted: Collection[LogKey]
    orders: Mapping[LogKey, int]
    before: str
    position: str


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table in a file, and the strategy by which its keys are won: `offset`, `header:version`."""

    path: Path | str
    name: str
    strategy: str

    @property
    def quoted(self) -> str:
        """As SQL has it."""
        return '"' + self.name.replace('"', '""') + '"'

    def position(self, *, there: bool, row: tuple[str, str] | None) -> str | None:
        """The stored position, None if the table is to be created. `row`: position and strategy.

        Raises `RefusedError` for a table of another origin, or that was filled by another strategy.
        """
        if self.name.lower() in (POSITIONS, ORDERS):
            raise RefusedError(
                f"{self.path}: Lithify stores its own data in the table {self.name}, so it cannot hydrate a topic of "
                "that name",
                hint="use a file of JSON lines",
            )
        if not there:
            return None
        if row is None:
            raise RefusedError(
                f"{self.path} has a table {self.name} that Lithify did not create", hint="drop it, or use another file"
            )
        if row[1] != self.strategy:
            raise RefusedError(
                f"{self.path}: the table {self.name} was filled with compaction.strategy {row[1]}, but the topic now "
                f"has {self.strategy}",
                hint="drop the table and hydrate the topic again",
            )
        if not isinstance(row[0], str):
            raise self.not_ours(POSITIONS, row[0])
        return row[0]

    def order(self, stored: object) -> int:
        """One of `lithify_orders`, which is text, as no database has integers as large. Raises `RefusedError`."""
        try:
            return int(str(stored))
        except ValueError:
            raise self.not_ours(ORDERS, stored) from None

    def file(self) -> FileId | None:
        """The file that is at the path now; None if there is none, as of a temporary database."""
        if not self.path:
            return None
        try:
            found = Path(self.path).stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def check_still(self, opened: FileId | None) -> None:
        """Raises `UnusableEnvironmentError` unless the file that was `opened` is there: the table is stored in it."""
        if self.file() != opened:
            raise UnusableEnvironmentError(
                f"{self.path} was removed or replaced while the table {self.name} was filled",
                hint="hydrate the topic again",
            )

    def not_ours(self, table: str, stored: object) -> RefusedError:
        shown = repr(stored)[:_SHOWN_CHARACTERS]
        return RefusedError(
            f"{self.path}: {table} has {shown} for the table {self.name}, which Lithify did not write",
            hint=f"drop the table {self.name} and hydrate the topic again",
        )

    def check_no_other_run(self, position: str, change: Change) -> None:
        """Raises `ConflictError` if another run has stored a position meanwhile."""
        if position != change.before:
            raise ConflictError(
                f"{self.path}: another run is filling the table {self.name}",
                hint="let the other run continue, or stop it first",
            )


class StoredTable(Protocol):
    """The table of one topic. Calls raise `BusyError`, `RefusedError` or `UnusableEnvironmentError`."""

    position: str
    """As it was stored last when the table was opened; empty for a table that has none yet."""

    def orders(self, keys: Collection[LogKey]) -> Mapping[LogKey, int]:
        """The orders of the keys that have one."""
        ...

    def apply(self, change: Change) -> None:
        """As a whole, or not at all. Raises `ConflictError` if another run fills the table."""
        ...

    def release(self) -> None:
        """Lets other programs have the file until the next call, where two cannot have it at once."""
        ...

    def close(self) -> None: ...


def row_of(record: Record) -> Row:
    assert record.partition is not None and record.key is not None
    return (
        record.partition,
        record.key,
        record.value,
        record.offset,
        record.timestamp,
        headers_text(record.headers) if record.headers else "[]",
    )


def headers_text(headers: Sequence[Header]) -> str:
    return json.dumps([[name, _as_json(value)] for name, value in headers], ensure_ascii=False) if headers else "[]"


def headers_of(text: str) -> tuple[Header, ...]:
    """What `headers_text` was given."""
    return tuple((name, _from_json(value)) for name, value in json.loads(text))


def unusable(path: object, error: Exception) -> UnusableEnvironmentError:
    message = str(error).partition("\n")[0]  # DuckDB shows its statements as well
    return UnusableEnvironmentError(f"{path}: {message}", hint="check the file, its folder, and the space on its disk")


def _as_json(value: bytes | None) -> object:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value or b"").decode()}


def _from_json(value: str | dict[str, str] | None) -> bytes | None:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return None if value is None else value.encode()
