"""Leases in a table of an SQL database: PostgreSQL, or an SQLite file for cleaners on one machine.

    lithify_leases     name (primary key)      owner   beats
    lithify_cleaners   cleaner (primary key)   scope   interval_ms   started_ms   looked_ms

Every operation is one short transaction, and the database decides between two cleaners. A free lease is
an INSERT, which the primary key allows once. A takeover is an UPDATE of the row only if it is unchanged
since it was read. The leases that were taken are then selected: their rows have the number of this write.
So each operation can be repeated, and a failed one is repeated once, on a new connection if necessary.

Only `status` reads the notes of cleaners. The first note creates their table, so that readers need no right to
create tables, and leases work even where the cleaners have none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Engine,
    MetaData,
    String,
    Table,
    and_,
    delete,
    func,
    select,
    tuple_,
    update,
)

from lithify.coordination.leases.lease_transactions import (
    Transactions,
    has_table,
    in_parts,
    make_table,
    shared_database,
)
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.coordination.leases.stored_rows import checked
from lithify.model.cleaner_note import CleanerNote
from lithify.ports.leases import NOTES_KEPT_MS, NOTES_TABLE, Coordination, Lease


def table_of_leases(name: str) -> Table:
    """A table of leases: cleaners and groups have one each, as each often reads all of its own."""
    return Table(
        name,
        MetaData(),
        Column("name", String, primary_key=True),
        Column("owner", String, nullable=False),
        Column("beats", BigInteger, nullable=False),
    )


LEASES = table_of_leases("lithify_leases")
NOTES = Table(
    NOTES_TABLE,
    MetaData(),
    Column("cleaner", String, primary_key=True),
    Column("scope", String, nullable=False),
    Column("interval_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("looked_ms", BigInteger),
)


class SqlCoordination:
    """`Coordination` for processes that reach the same database. Creates its table if there is none."""

    shared = True

    def __init__(self, transactions: Transactions, *, makes_table: bool = True, table: Table = LEASES) -> None:
        self._transactions = transactions
        self._table = table
        self._insert = self._transactions.insert_into(table).on_conflict_do_nothing()
        if makes_table:
            self._transactions.done(lambda connection: make_table(connection, table))

    def leases(self, prefix: str = "") -> tuple[Lease, ...]:
        wanted = select(self._table).where(self._table.c.name.startswith(prefix, autoescape=True))
        rows = self._transactions.done(lambda connection: connection.execute(wanted).all())
        # SQLite's LIKE takes A and a for the same.
        return tuple(Lease(row.name, row.owner, row.beats) for row in rows if row.name.startswith(prefix))

    def take(self, leases: Sequence[Lease], seen: Mapping[str, Lease]) -> frozenset[str]:
        if not leases:
            return frozenset()
        table, owner, beats = self._table, leases[0].owner, leases[0].beats
        # Sorted, so that two cleaners lock the same rows in the same order.
        ordered = sorted(leases, key=lambda lease: lease.name)
        new = [asdict(lease) for lease in ordered if lease.name not in seen]
        takeovers = _takeovers(table, [seen[lease.name] for lease in ordered if lease.name in seen])

        def taken(connection: Connection) -> frozenset[str]:
            if new:
                connection.execute(self._insert, new)
            for as_seen in takeovers:
                connection.execute(update(table).where(as_seen).values(owner=owner, beats=beats))
            this_write = and_(table.c.owner == owner, table.c.beats == beats)
            return frozenset(connection.execute(select(table.c.name).where(this_write)).scalars())

        return self._transactions.done(taken)

    def renew(self, owner: str, beats: int) -> frozenset[str]:
        table = self._table

        def renewed(connection: Connection) -> frozenset[str]:
            ours = table.c.owner == owner
            connection.execute(update(table).where(ours, table.c.beats < beats).values(beats=beats))
            # After the update, as no other cleaner takes over a renewed lease.
            return frozenset(connection.execute(select(table.c.name).where(ours)).scalars())

        with self._transactions.many_rows:
            return self._transactions.done(renewed)

    def release(self, owner: str, names: Collection[str]) -> None:
        ordered, table = sorted(names), self._table

        def released(connection: Connection) -> None:
            for some in in_parts(ordered):
                connection.execute(delete(table).where(table.c.owner == owner, table.c.name.in_(some)))

        with self._transactions.many_rows:
            self._transactions.done(released)

    def remove(self, seen: Sequence[Lease]) -> None:
        ordered = sorted((lease.name, lease.owner, lease.beats) for lease in seen)
        table = self._table
        row = tuple_(table.c.name, table.c.owner, table.c.beats)

        def removed(connection: Connection) -> None:
            for some in in_parts(ordered):
                connection.execute(delete(table).where(row.in_(some)))

        with self._transactions.many_rows:
            self._transactions.done(removed)

    def put_note(self, note: CleanerNote) -> None:
        values = asdict(note)
        insert = self._transactions.insert_into(NOTES).values(values)
        upsert = insert.on_conflict_do_update(index_elements=[NOTES.c.cleaner], set_=values)
        last_ms = func.coalesce(NOTES.c.looked_ms, NOTES.c.started_ms)

        def put(connection: Connection) -> None:
            make_table(connection, NOTES)
            connection.execute(upsert)
            connection.execute(delete(NOTES).where(last_ms < note.last_ms - NOTES_KEPT_MS))

        self._transactions.done(put)

    def notes(self) -> tuple[CleanerNote, ...]:
        return self._transactions.done(_read_notes)

    def drop_note(self, cleaner: str) -> None:
        self._transactions.done(lambda connection: _drop_note(connection, cleaner))


def open_coordination(url: str | None, catalogs: Engine | None = None, *, makes_table: bool = True) -> Coordination:
    """Leases in the database at `url`, else in the catalog's own, else in memory.

    With `makes_table` it connects. Raises `CoordinationError`.
    """
    shared = shared_database(url, catalogs)
    if shared is None:
        return MemoryCoordination()  # no other process can see the catalog either, or the user has named no database
    return SqlCoordination(shared, makes_table=makes_table)


def _takeovers(table: Table, seen: Sequence[Lease]) -> list[ColumnElement[bool]]:
    """Conditions for rows unchanged since they were read: one for all of an owner with the same `beats`."""
    alike: dict[tuple[str, int], list[str]] = {}
    for lease in seen:
        alike.setdefault((lease.owner, lease.beats), []).append(lease.name)
    return [
        and_(table.c.owner == owner, table.c.beats == beats, table.c.name.in_(some))
        for (owner, beats), names in sorted(alike.items())
        for some in in_parts(names)
    ]


def _read_notes(connection: Connection) -> tuple[CleanerNote, ...]:
    if not has_table(connection, NOTES):
        return ()
    rows = connection.execute(select(NOTES).order_by(NOTES.c.cleaner))
    return tuple(CleanerNote(*row) for row in checked(rows, NOTES))


def _drop_note(connection: Connection, cleaner: str) -> None:
    if has_table(connection, NOTES):
        connection.execute(delete(NOTES).where(NOTES.c.cleaner == cleaner))
