"""Tables that were hydrated, as other programs read them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

from lithify.hydration.rows import headers_of
from lithify.model.record import Record

Plain = tuple[bytes | None, int | None, int | None, tuple[tuple[str, bytes | None], ...]]
Table = dict[tuple[int, bytes], Plain]


def expected_table(records: Iterable[Record]) -> Table:
    """The latest record of every partition and live key, the plain way."""
    table: Table = {}
    for record in records:
        if record.key is None:
            continue
        place = record.partition or 0, record.key
        table.pop(place, None)
        if record.value is not None:
            table[place] = record.value, record.offset, record.timestamp, record.headers
    return table


def stored_table(path: Path, name: str) -> Table:
    """What a SQLite or DuckDB file has."""
    return {
        (partition, bytes(key)): (None if value is None else bytes(value), offset, timestamp, headers_of(headers))
        for partition, key, value, offset, timestamp, headers in _all(path, f'SELECT * FROM "{name}"')
    }


def stored_offsets(path: Path, name: str) -> dict[int, int]:
    """By partition the offset that its consumer continues at."""
    ((text,),) = _all(path, f"SELECT position FROM lithify_positions WHERE name = '{name}'")
    places = json.loads(text)["places"] if text else {}
    return {int(partition): place["offset"] for partition, place in places.items()}


def written_table(path: Path) -> Table:
    """What a file of JSON lines has, of text."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["partition"], row["offset"]) for row in rows] == sorted((r["partition"], r["offset"]) for r in rows)
    return {
        (row["partition"], row["key"].encode()): (
            row["value"].encode(),
            row["offset"],
            row["timestamp"],
            tuple((name, None if value is None else value.encode()) for name, value in row["headers"]),
        )
        for row in rows
    }


def _all(path: Path, query: str) -> list[tuple[Any, ...]]:
    connection = duckdb.connect(path, read_only=True) if path.suffix == ".duckdb" else sqlite3.connect(path)
    try:
        return list(connection.execute(query).fetchall())
    finally:
        connection.close()
