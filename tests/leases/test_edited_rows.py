"""Rows that a person or another program has edited: whatever a column has, an error names the row (C58, C68)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import BigInteger, Column, Integer, String, Table

from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.groups_sql import SqlGroups
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.coordination.leases.replicas_sql import SqlReplicas
from lithify.coordination.leases.sql_coordination import NOTES, SqlCoordination
from lithify.coordination.leases.tables.groups import COPIED, FENCES, POSITIONS
from lithify.coordination.leases.tables.replicas import PROGRESS, REPLICAS
from lithify.errors import CoordinationError
from lithify.model.cleaner_note import CleanerNote
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.replica_progress import ReplicaStanding, TopicProgress
from lithify.ports.leases import Lease

SCOPE = "file:///lake"
ORDERS = TopicName("default", "orders")
POSITION = Position("g", LogId(ORDERS, 0), Cursor("id-1", 0, 5, 0), False, 1_000)
DEFINITION = ReplicaDefinition("r", SCOPE, "default", None, "/backup", "file:///backup", None, False, 1_000)
NOT_NUMBERS = ("text", b"\xff\x00", 1.5, float("inf"), -1, -(2**63))


@dataclass(frozen=True, slots=True)
class Edited:
    """A database with a row in every table, that of `table` edited."""

    path: Path
    groups: SqlGroups
    replicas: SqlReplicas
    coordination: SqlCoordination

    @classmethod
    def at(cls, path: Path) -> Edited:
        shared = Transactions(engine_at(f"sqlite:///{path}"))
        made = cls(path, SqlGroups(shared, SCOPE), SqlReplicas(shared, SCOPE), SqlCoordination(shared))
        lease = Lease(GroupTopic(SCOPE, "g", ORDERS).partition(0), "alpha", 1)
        assert made.groups.copies.copy(ORDERS, [POSITION], made.groups.copies.fence(ORDERS)).written == 1
        assert made.groups.leases.take([lease], {}) and not made.groups.commit([POSITION], "alpha")
        assert made.replicas.add(DEFINITION)
        made.replicas.note([TopicProgress("r", ORDERS, ReplicaStanding.REPLICATING, 5, "host-1")])
        made.coordination.put_note(CleanerNote("c", SCOPE, 1_000, 2_000, None))
        return made

    def edit(self, table: Table, column: str, value: object) -> None:
        with closing(sqlite3.connect(self.path)) as other:
            other.execute(f"UPDATE {table.name} SET {column} = ?", (value,))
            other.commit()

    def read(self, table: Table) -> None:
        match table.name:
            case POSITIONS.name:
                self.groups.positions()
            case COPIED.name | FENCES.name:
                self.groups.copies.copy(ORDERS, [POSITION], self.groups.copies.fence(ORDERS))
            case REPLICAS.name:
                self.replicas.definitions()
            case PROGRESS.name:
                self.replicas.progress()
            case _:
                self.coordination.notes()


def columns() -> list[tuple[Table, Column[object]]]:
    tables = (POSITIONS, COPIED, FENCES, REPLICAS, PROGRESS, NOTES)
    selected_by = {"scope", "stream", "topic", "replica"}  # a row with another one is not read
    return [(table, column) for table in tables for column in table.columns if column.name not in selected_by]


@pytest.mark.parametrize(("table", "column"), columns(), ids=lambda it: getattr(it, "name", None))
def test_no_value_of_another_kind_is_taken_or_is_a_defect(tmp_path: Path, table: Table, column: Column[object]) -> None:
    edited = Edited.at(tmp_path / "edited.db")
    edited.read(table)
    if isinstance(column.type, Integer | BigInteger):
        values: tuple[object, ...] = NOT_NUMBERS
    else:
        values = (b"\xff\x00",) if isinstance(column.type, String) else ()
    for value in values:
        edited.edit(table, column.name, value)
        with pytest.raises(CoordinationError, match=f"the row of {table.name} with .* {column.name} is ") as error:
            edited.read(table)
        assert "correct or delete that row" in error.value.hint


@pytest.mark.parametrize(
    ("table", "column", "value"), [(REPLICAS, "throttle_bytes", 0), (PROGRESS, "standing", "x" * 10**6)], ids=str
)
def test_values_that_mean_nothing_are_errors_too(tmp_path: Path, table: Table, column: str, value: object) -> None:
    edited = Edited.at(tmp_path / "edited.db")
    edited.edit(table, column, value)
    with pytest.raises(CoordinationError, match=f"its {column} is ") as error:
        edited.read(table)
    assert len(str(error.value)) < 500
