"""What positions say of their logs' commits, in a table beside theirs (C49, C58).

    lithify_positions        billing, orders-0:  10, committed at 1000         versions before this one know no other
    lithify_position_runs    billing, orders-0:  10, committed at 1000, run    it counts only for that very position

A user who has no right to that table does without it, as those versions do: a restored log is then found by its epoch.
What was asked once counts until a transaction fails: it is done a second time, and then asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Table, delete, select

from lithify.coordination.leases.lease_transactions import Transactions, has_table, is_granted, make_table, may_write
from lithify.coordination.leases.stored_rows import checked
from lithify.coordination.leases.tables.groups import RUNS, runs_of
from lithify.model.groups.positions import Position

Where = Callable[[Table], Iterable[Any]]
"""The conditions of some statements, each for some of the rows of a table with the key of positions."""


class SqlRuns:
    """The table of runs, within transactions of the groups of one warehouse."""

    def __init__(self, transactions: Transactions, scope: str) -> None:
        self._upsert, self._scope = transactions.upsert_into(RUNS), scope
        self._writes: bool | None = None
        self._asked: bool | None = None
        self._reads: bool | None = None

    def write(self, connection: Connection, positions: Iterable[Position]) -> None:
        """Notes the runs of positions that were just written."""
        rows = runs_of(positions, self._scope)
        if rows and self._may_write(connection):
            connection.execute(self._upsert, rows)

    def committed(self) -> None:
        """After such a transaction: from now on it need not ask. A rollback removes the table as well."""
        self._writes = self._asked

    def read(self, connection: Connection, where: Where) -> Sequence[Any]:
        """The rows. Raises `CoordinationError` for one that cannot be."""
        if not has_table(connection, RUNS) or not self._may_read(connection):
            return ()
        self._reads = None  # unless it succeeds
        rows = [row for some in where(RUNS) for row in connection.execute(select(RUNS).where(some))]
        self._reads = True
        return checked(rows, RUNS)

    def delete(self, connection: Connection, where: Where) -> None:
        """Removes the rows, if there are any."""
        if has_table(connection, RUNS) and self._may_write(connection):
            for some in where(RUNS):
                connection.execute(delete(RUNS).where(some))

    def _may_write(self, connection: Connection) -> bool:
        known, self._writes = self._writes, None  # until `committed`
        if known is None:
            known = is_granted(lambda: make_table(connection, RUNS), connection) and may_write(connection, RUNS)
        self._asked = known
        return known

    def _may_read(self, connection: Connection) -> bool:
        if self._reads is None:
            self._reads = is_granted(lambda: connection.execute(select(RUNS).limit(0)), connection)
        return self._reads
