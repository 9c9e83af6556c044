"""Leases in a table of an SQL database: PostgreSQL, or an SQLite file for cleaners on one machine.

    lithify_leases     name (primary key)      owner   beats
    lithify_cleaners   cleaner (primary key)   scope   interval_ms   started_ms   looked_ms

Every operation is one short transaction, and the database decides between two cleaners: a free lease is
an INSERT, which the primary key allows once; a takeover is an UPDATE of the row only if it is unchanged
since it was read. Which leases were taken is then selected: their rows have the number of this write. So
each operation can be repeated, and a failed one is repeated once, on a new connection if need be.

Only `status` reads the notes of cleaners. The first note creates their table, so that readers need no right to
create tables, and leases work even where the cleaners have none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from threading import Lock
from typing import Any, TypeVar

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
    inspect,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.schema import CreateTable

from lithify.errors import CoordinationError
from lithify.leases.database import bounded_engine, in_memory, parsed, shown
from lithify.leases.memory import MemoryCoordination
from lithify.ports.leases import NOTES_KEPT_MS, Coordination, Lease
from lithify.reports.events import CleanerNote

T = TypeVar("T")

LEASES = Table(
    "lithify_leases",
    MetaData(),
    Column("name", String, primary_key=True),
    Column("owner", String, nullable=False),
    Column("beats", BigInteger, nullable=False),
)
NOTES = Table(
    "lithify_cleaners",
    MetaData(),
    Column("cleaner", String, primary_key=True),
    Column("scope", String, nullable=False),
    Column("interval_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("looked_ms", BigInteger),
)
NAMES_AT_ONCE = 500
"""Names in one statement, below every database's limit of parameters."""


class SqlCoordination:
    """`Coordination` for processes that reach the same database. Creates its table if there is none."""

    shared = True

    def __init__(self, engine: Engine, *, makes_table: bool = True) -> None:
        self._engine = engine
        dialect = postgresql if engine.dialect.name == "postgresql" else sqlite
        self._insert = dialect.insert(LEASES).on_conflict_do_nothing()
        # Two statements that lock several rows each could deadlock, so those of this process run one at a time.
        self._many_rows = Lock()
        if makes_table:
            self._done(_make_table)

    def leases(self) -> tuple[Lease, ...]:
        rows = self._done(lambda connection: connection.execute(select(LEASES)).all())
        return tuple(Lease(row.name, row.owner, row.beats) for row in rows)

    def take(self, leases: Sequence[Lease], seen: Mapping[str, Lease]) -> frozenset[str]:
        if not leases:
            return frozenset()
        owner, beats = leases[0].owner, leases[0].beats
        # Sorted, so that two cleaners lock the same rows in the same order.
        ordered = sorted(leases, key=lambda lease: lease.name)
        new = [asdict(lease) for lease in ordered if lease.name not in seen]
        takeovers = _takeovers([seen[lease.name] for lease in ordered if lease.name in seen])

        def taken(connection: Connection) -> frozenset[str]:
            if new:
                connection.execute(self._insert, new)
            for as_seen in takeovers:
                connection.execute(update(LEASES).where(as_seen).values(owner=owner, beats=beats))
            this_write = and_(LEASES.c.owner == owner, LEASES.c.beats == beats)
            return frozenset(connection.execute(select(LEASES.c.name).where(this_write)).scalars())

        return self._done(taken)

    def renew(self, owner: str, beats: int) -> frozenset[str]:
        def renewed(connection: Connection) -> frozenset[str]:
            ours = LEASES.c.owner == owner
            connection.execute(update(LEASES).where(ours, LEASES.c.beats < beats).values(beats=beats))
            # After the update, as no other cleaner takes over a renewed lease.
            return frozenset(connection.execute(select(LEASES.c.name).where(ours)).scalars())

        with self._many_rows:
            return self._done(renewed)

    def release(self, owner: str, names: Collection[str]) -> None:
        ordered = sorted(names)

        def released(connection: Connection) -> None:
            for some in _parts(ordered):
                connection.execute(delete(LEASES).where(LEASES.c.owner == owner, LEASES.c.name.in_(some)))

        with self._many_rows:
            self._done(released)

    def remove(self, seen: Sequence[Lease]) -> None:
        ordered = sorted((lease.name, lease.owner, lease.beats) for lease in seen)
        row = tuple_(LEASES.c.name, LEASES.c.owner, LEASES.c.beats)

        def removed(connection: Connection) -> None:
            for some in _parts(ordered):
                connection.execute(delete(LEASES).where(row.in_(some)))

        with self._many_rows:
            self._done(removed)

    def put_note(self, note: CleanerNote) -> None:
        self._done(lambda connection: _put_note(connection, note))

    def notes(self) -> tuple[CleanerNote, ...]:
        return self._done(_read_notes)

    def drop_note(self, cleaner: str) -> None:
        self._done(lambda connection: _drop_note(connection, cleaner))

    def _done(self, work: Callable[[Connection], T]) -> T:
        """Runs a transaction, a second time if it fails. Raises `CoordinationError`."""
        try:
            return self._once(work)
        except SQLAlchemyError:
            pass  # SQLAlchemy has also dropped the other old connections of the pool
        try:
            return self._once(work)
        except SQLAlchemyError as error:
            raise self._unusable(error) from error

    def _once(self, work: Callable[[Connection], T]) -> T:
        with self._engine.begin() as connection:
            return work(connection)

    def _unusable(self, error: SQLAlchemyError) -> CoordinationError:
        # Not SQLAlchemy's own text, which has the statement and its parameters.
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        text = " ".join(str(cause).split())[:300] or type(cause).__name__
        return CoordinationError(
            f"the database of leases cannot be used: {text}",
            hint=f"check {shown(self._engine.url)}, or name another with --coordination-url",
        )


def open_coordination(url: str, *, makes_table: bool = True) -> SqlCoordination:
    """Leases in the database of a SQLAlchemy URL. With `makes_table` it connects. Raises `CoordinationError`."""
    database = parsed(url)
    if in_memory(database):
        raise CoordinationError("a database in memory cannot be shared", hint="name a file: sqlite:////PATH/FILE.db")
    return SqlCoordination(bounded_engine(database), makes_table=makes_table)


def of_engine(engine: Engine, *, makes_table: bool = True) -> Coordination:
    """Leases in the database of a catalog, on separate connections. Raises `CoordinationError`."""
    if in_memory(engine.url):
        return MemoryCoordination()  # no other process can see the catalog either
    kind = f"{engine.dialect.name}+{engine.driver}"
    return SqlCoordination(bounded_engine(engine.url.set(drivername=kind)), makes_table=makes_table)


def _make_table(connection: Connection) -> None:
    # Checked first, as a user of an existing table may have no right to create tables.
    if not inspect(connection).has_table(LEASES.name):
        # PostgreSQL may fail one of two concurrent CREATEs nevertheless; its retry then finds the table.
        connection.execute(CreateTable(LEASES, if_not_exists=True))


def _takeovers(seen: Sequence[Lease]) -> list[ColumnElement[bool]]:
    """Conditions for rows unchanged since they were read: one for all of an owner with the same `beats`."""
    alike: dict[tuple[str, int], list[str]] = {}
    for lease in seen:
        alike.setdefault((lease.owner, lease.beats), []).append(lease.name)
    return [
        and_(LEASES.c.owner == owner, LEASES.c.beats == beats, LEASES.c.name.in_(some))
        for (owner, beats), names in sorted(alike.items())
        for some in _parts(names)
    ]


def _parts(these: Sequence[T]) -> list[Sequence[T]]:
    return [these[start : start + NAMES_AT_ONCE] for start in range(0, len(these), NAMES_AT_ONCE)]


def _put_note(connection: Connection, note: CleanerNote) -> None:
    if not _has_notes(connection):
        connection.execute(CreateTable(NOTES, if_not_exists=True))
    values = asdict(note)
    insert: Any = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(NOTES).values(values)
    connection.execute(insert.on_conflict_do_update(index_elements=[NOTES.c.cleaner], set_=values))
    last_ms = func.coalesce(NOTES.c.looked_ms, NOTES.c.started_ms)
    connection.execute(delete(NOTES).where(last_ms < note.last_ms - NOTES_KEPT_MS))


def _read_notes(connection: Connection) -> tuple[CleanerNote, ...]:
    if not _has_notes(connection):
        return ()
    return tuple(CleanerNote(*row) for row in connection.execute(select(NOTES).order_by(NOTES.c.cleaner)))


def _drop_note(connection: Connection, cleaner: str) -> None:
    if _has_notes(connection):
        connection.execute(delete(NOTES).where(NOTES.c.cleaner == cleaner))


def _has_notes(connection: Connection) -> bool:
    return inspect(connection).has_table(NOTES.name)
