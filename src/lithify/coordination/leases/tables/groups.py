"""The tables of groups: leases of members, positions, and what copies of positions have written.

lithify_group_leases       name (primary key)                                      owner   beats
lithify_positions          scope, consumer_group, topic, partition (primary key)   identity, ... , committed_ms
lithify_position_runs      the same                                                identity, ... , version, run
lithify_copied_positions   scope, consumer_group, topic, partition (primary key)   identity, ... , committed_ms
lithify_position_fences    scope, topic (primary key)                              fence
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, String, Table

from lithify.coordination.leases.sql_coordination import table_of_leases
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import Position
from lithify.model.names import LogId, TopicName


def _key_of_positions() -> Iterator[Column[Any]]:
    for name in ("scope", "consumer_group", "stream", "topic"):
        yield Column(name, String, primary_key=True)
    yield Column("partition", Integer, primary_key=True)


def _table_of_positions(name: str) -> Table:
    return Table(
        name,
        MetaData(),
        *_key_of_positions(),
        Column("identity", String, nullable=False),
        Column("generation", BigInteger, nullable=False),
        Column("position", BigInteger, nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("compacted", Boolean, nullable=False),
        Column("committed_ms", BigInteger, nullable=False),
    )


GROUP_LEASES = table_of_leases("lithify_group_leases")
POSITIONS = _table_of_positions("lithify_positions")
COPIED = _table_of_positions("lithify_copied_positions")
RUNS = Table(
    "lithify_position_runs",
    MetaData(),
    *_key_of_positions(),
    Column("identity", String, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("committed_ms", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("run", String, nullable=False),
)
"""What positions say of their logs' commits (C49). A table of its own: earlier versions write positions without it.

So a row counts only for the very position that it was written with.
"""
FENCES = Table(
    "lithify_position_fences",
    MetaData(),
    Column("scope", String, primary_key=True),
    Column("stream", String, primary_key=True),
    Column("topic", String, primary_key=True),
    Column("fence", BigInteger, nullable=False),
)


def row_of(position: Position, scope: str) -> dict[str, Any]:
    """A position of a warehouse as a row."""
    log, cursor = position.log, position.cursor
    return {
        "scope": scope,
        "consumer_group": position.group,
        "stream": log.topic.stream,
        "topic": log.topic.topic,
        "partition": log.partition,
        "identity": cursor.identity,
        "generation": cursor.generation,
        "position": cursor.offset,
        "epoch": cursor.epoch,
        "compacted": position.compacted,
        "committed_ms": position.committed_ms,
    }


def position_of(row: Any) -> Position:
    """The position in a row that was `checked`."""
    log = LogId(TopicName(row.stream, row.topic), row.partition)
    cursor = Cursor(row.identity, row.generation, row.position, row.epoch)
    return Position(row.consumer_group, log, cursor, row.compacted, row.committed_ms)


def runs_of(positions: Iterable[Position], scope: str) -> list[dict[str, Any]]:
    """The rows beside positions of a warehouse whose cursors say it."""
    rows = []
    for position in positions:
        if (run := position.cursor.run) is not None:
            row = {**row_of(position, scope), "version": position.cursor.version, "run": run}
            rows.append({column.name: row[column.name] for column in RUNS.columns})
    return rows


def with_runs(positions: Iterable[Position], rows: Iterable[Any]) -> Iterator[Position]:
    """Positions of one warehouse, with what rows say that were written with them, and were `checked`."""
    runs = {
        (row.consumer_group, row.stream, row.topic, row.partition, row.identity, row.position, row.committed_ms): row
        for row in rows
    }
    for position in positions:
        log, cursor = position.log, position.cursor
        key = position.group, log.topic.stream, log.topic.topic, log.partition
        row = runs.get((*key, cursor.identity, cursor.offset, position.committed_ms))
        yield position if row is None else replace(position, cursor=replace(cursor, version=row.version, run=row.run))
