"""Notes of cleaners in the database of their leases: a table of its own, which only `status` reads.

    lithify_cleaners   cleaner (primary key)   scope   interval_ms   started_ms   looked_ms

The first note creates it, so that readers need no right to create tables, and leases work even where
the cleaners have none.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import BigInteger, Column, Connection, MetaData, String, Table, delete, func, inspect, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from lithify.ports.leases import NOTES_KEPT_MS
from lithify.reports.cleaner_note import CleanerNote

NOTES = Table(
    "lithify_cleaners",
    MetaData(),
    Column("cleaner", String, primary_key=True),
    Column("scope", String, nullable=False),
    Column("interval_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("looked_ms", BigInteger),
)


def put_note(connection: Connection, note: CleanerNote) -> None:
    if not _is_there(connection):
        connection.execute(CreateTable(NOTES, if_not_exists=True))
    values = asdict(note)
    insert: Any = (postgresql if connection.dialect.name == "postgresql" else sqlite).insert(NOTES).values(values)
    connection.execute(insert.on_conflict_do_update(index_elements=[NOTES.c.cleaner], set_=values))
    last_ms = func.coalesce(NOTES.c.looked_ms, NOTES.c.started_ms)
    connection.execute(delete(NOTES).where(last_ms < note.last_ms - NOTES_KEPT_MS))


def read_notes(connection: Connection) -> tuple[CleanerNote, ...]:
    if not _is_there(connection):
        return ()
    return tuple(CleanerNote(*row) for row in connection.execute(select(NOTES).order_by(NOTES.c.cleaner)))


def drop_note(connection: Connection, cleaner: str) -> None:
    if _is_there(connection):
        connection.execute(delete(NOTES).where(NOTES.c.cleaner == cleaner))


def _is_there(connection: Connection) -> bool:
    return inspect(connection).has_table(NOTES.name)
