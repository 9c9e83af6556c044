"""What versions before the identity of a warehouse have stored under its place becomes its own, once (C73).

    lithify_scopes     scope (primary key)    identity          the place was taken over by that warehouse,
                                                                or it has defined a replica there

    positions, what copies wrote, fences      copied: members of an earlier version go on with theirs, which nobody else
                                              reads any more
    definitions of replicas, their progress   moved: daemons of an earlier version find none, and copy nothing more
    targets of definitions                    named by the identity from then on

In one transaction, before the first one of this process. Of two processes one waits for the other, and finds it done. A
user who may not write there takes nothing over, and sees what others have taken over. Who may write positions, but not
all that is taken over, is refused: its groups would begin anew.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    MetaData,
    String,
    Table,
    delete,
    literal,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from lithify.coordination.leases.lease_transactions import Transactions, has_table, is_denied, make_table, may_write
from lithify.coordination.leases.tables.groups import COPIED, FENCES, POSITIONS
from lithify.coordination.leases.tables.replicas import PROGRESS, REPLICAS
from lithify.errors import CoordinationError
from lithify.model.formats.warehouse_scope import WarehouseScope

SCOPES = Table(
    "lithify_scopes",
    MetaData(),
    Column("scope", String, primary_key=True),
    Column("identity", String, nullable=False),
)


def scoped(transactions: Transactions, scope: WarehouseScope) -> Transactions:
    """The transactions, the first of which is to take over what is stored under the former name of a warehouse."""
    if (former := scope.former) is not None:
        transactions.begin_with(
            f"{former} {scope.name}",
            lambda connection: _take_over(transactions, connection, former, scope.name),
        )
    return transactions


def note_place(write: Transactions, connection: Connection, former: str, name: str) -> None:
    """The warehouse at a place has that name: what is under the place is taken over already, or nothing is."""
    make_table(connection, SCOPES)
    connection.execute(write.upsert_into(SCOPES), [{"scope": former, "identity": name}])


def others_at(connection: Connection, former: str, name: str) -> list[str]:
    """Other names of what is, or was, at that place, as it was noted."""
    if not has_table(connection, SCOPES):
        return []
    query = select(SCOPES.c.identity).where(SCOPES.c.scope == former, SCOPES.c.identity != name)
    return list(connection.execute(query).scalars())


def _take_over(write: Transactions, connection: Connection, former: str, name: str) -> None:
    tables = [t for t in (POSITIONS, COPIED, FENCES, REPLICAS, PROGRESS) if has_table(connection, t)]
    if (
        REPLICAS in tables
        and _exists(connection, REPLICAS.c.target_scope == former)
        and may_write(connection, REPLICAS)
    ):
        connection.execute(update(REPLICAS).where(REPLICAS.c.target_scope == former).values(target_scope=name))
    if not any(_exists(connection, table.c.scope == former) for table in tables):
        return
    if has_table(connection, SCOPES) and _exists(connection, SCOPES.c.scope == former):
        return
    if not may_write(connection, tables[0]):
        return
    try:
        _take(write, connection, tables, former, name)
    except DBAPIError as error:
        if not is_denied(error):
            raise
        raise CoordinationError(
            f"the rows that an earlier version stored under {former} cannot be taken over: {str(error.orig).strip()}",
            hint="use the warehouse once as a user who may create tables there and write to all lithify_* tables",
        ) from None


def _take(write: Transactions, connection: Connection, tables: list[Table], former: str, name: str) -> None:
    make_table(connection, SCOPES)
    taken = write.insert_into(SCOPES).values(scope=former, identity=name).on_conflict_do_nothing()
    if connection.execute(taken).rowcount != 1:  # after another one's transaction has ended
        return
    for table in tables:
        if table in (REPLICAS, PROGRESS):
            _move(connection, table, former, name)
        else:
            _copy(write, connection, table, former, name)


def _exists(connection: Connection, what: ColumnElement[bool]) -> bool:
    return connection.execute(select(literal(1)).where(what).limit(1)).scalar() is not None


def _copy(write: Transactions, connection: Connection, table: Table, former: str, name: str) -> None:
    """Rows that are there under the new name already are newer, and remain."""
    columns = [literal(name).label(c.name) if c.name == "scope" else c for c in table.columns]
    rows = select(*columns).where(table.c.scope == former)
    insert = write.insert_into(table).from_select([c.name for c in table.columns], rows)
    connection.execute(insert.on_conflict_do_nothing())


def _move(connection: Connection, table: Table, former: str, name: str) -> None:
    others = table.alias()
    key = [column.name for column in table.primary_key if column.name != "scope"]
    same = [others.c[column] == table.c[column] for column in key]
    there = select(literal(1)).where(others.c.scope == name, *same).exists()
    connection.execute(update(table).where(table.c.scope == former, ~there).values(scope=name))
    connection.execute(delete(table).where(table.c.scope == former))
