"""The tables of groups: leases of members, positions, and what copies of positions have written.

lithify_group_leases       name (primary key)                                      owner   beats
lithify_positions          scope, consumer_group, topic, partition (primary key)   identity, ... , committed_ms
lithify_copied_positions   the same                                                the same
lithify_position_fences    scope, topic (primary key)                              fence
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Integer, MetaData, String, Table

from lithify.coordination.leases.sql_coordination import table_of_leases
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import Position
from lithify.model.names import LogId, TopicName


def _table_of_positions(name: str) -> Table:
    return Table(
        name,
        MetaData(),
        Column("scope", String, primary_key=True),
        Column("consumer_group", String, primary_key=True),
        Column("stream", String, primary_key=True),
        Column("topic", String, primary_key=True),
        Column("partition", Integer, primary_key=True),
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
