"""Notes of appends with idempotency keys in an SQL database: the catalog's, or the one of leases (C75).

The first note creates the tables. Rows are written sorted by key, so that two gateways lock them in the same order. A
note is written by an INSERT that the primary key allows once, or by an UPDATE of the row as it was seen. The rows are
selected after that: those with this run and the run before it are this write's. So each transaction can be repeated.

A new note locks the floor, below which requests are forgotten, so that it is not raised before the note is there. And
rows are removed only after it was raised. So a request is forgotten, or finds the note of its key.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, and_, bindparam, delete, select, tuple_, update

from lithify.coordination.leases.lease_scopes import scoped
from lithify.coordination.leases.lease_transactions import (
    Transactions,
    has_table,
    in_parts,
    make_table,
    required_database,
)
from lithify.coordination.leases.stored_rows import checked
from lithify.coordination.leases.tables.appends import APPENDS, FLOORS, note_of, places_text
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.names import TopicName
from lithify.model.topic.append_note import CLOCKS_DIFFER_MS, AppendNote, AppendRun

_C = APPENDS.c
_KEY = tuple(APPENDS.primary_key)


class SqlAppendNotes:
    """The notes of one warehouse. Every method raises `CoordinationError` when the database cannot be used."""

    def __init__(self, transactions: Transactions, scope: str) -> None:
        self._transactions, self._scope = transactions, scope
        self._insert = transactions.insert_into(APPENDS).on_conflict_do_nothing()
        as_seen = and_(*(_C[name] == bindparam(f"seen_{name}") for name in ("append_key", "chain", "run", "after")))
        new: dict[str, Any] = {
            name: bindparam(f"new_{name}") for name in ("chain", "run", "after", "places", "begun_ms")
        }
        self._update = update(APPENDS).where(as_seen, _C.version.is_(None)).values(new)
        self._floor = select(FLOORS.c.floor_ms).where(FLOORS.c.scope == scope)
        self._has_tables = False

    def find(self, topic: TopicName, keys: Collection[str]) -> Mapping[str, AppendNote]:
        """The notes of these keys, by key, without those that have none. Creates nothing."""

        def read(connection: Connection) -> Mapping[str, AppendNote]:
            return self._read(connection, topic, keys) if self._has_tables or has_table(connection, APPENDS) else {}

        return self._transactions.done(read)

    def note(
        self, topic: TopicName, notes: Sequence[AppendNote], seen: Mapping[str, AppendNote], latest: AppendRun
    ) -> Mapping[str, AppendNote]:
        """In one transaction: the `latest` run has landed, and each open note takes the place of the one seen.

        Without one seen it is new. A note that another process has written, replaced or removed stays as it is, and
        so does one that has landed. A request that began before what is forgotten gets no new note: a gateway may
        have stalled so long that another one has done the same request since. Returns what is there then, by key.
        """
        ordered = sorted(notes, key=lambda note: note.key)
        new = [self._row(topic, note) for note in ordered if note.key not in seen]
        again = [_as_seen(seen[note.key], note) for note in ordered if note.key in seen]

        def write(connection: Connection) -> Mapping[str, AppendNote]:
            self._make_tables(connection)
            self._note_landed(connection, topic, latest)  # first, as an SQLite file is locked from this write on
            floor_ms = connection.execute(self._floor.with_for_update(read=True)).scalar_one()
            remembered = [row for row in new if row["begun_ms"] >= floor_ms]
            if remembered:
                connection.execute(self._insert, remembered)
            if again:
                connection.execute(self._update.where(self._of(topic)), again)
            return self._read(connection, topic, [note.key for note in ordered])

        with self._transactions.many_rows:
            there = self._transactions.done(write)
        self._has_tables = True
        return there

    def landed(self, topic: TopicName, run: AppendRun) -> None:
        """The run has landed: its notes are no longer open. The first version stated remains."""

        def write(connection: Connection) -> None:
            if has_table(connection, APPENDS):
                self._note_landed(connection, topic, run)

        with self._transactions.many_rows:
            self._transactions.done(write)

    def forget_before(self, time_ms: int) -> None:
        """From now on requests that began before this time are forgotten."""
        floor_ms = time_ms + CLOCKS_DIFFER_MS
        higher = update(FLOORS).where(FLOORS.c.scope == self._scope, FLOORS.c.floor_ms < floor_ms)

        def write(connection: Connection) -> None:
            self._make_tables(connection)
            connection.execute(higher.values(floor_ms=floor_ms))

        self._transactions.done(write)

    def forgotten(self, limit: int) -> Sequence[tuple[TopicName, AppendNote]]:
        """Some open notes of requests that are forgotten."""

        def read(connection: Connection) -> Sequence[Any]:
            if not has_table(connection, APPENDS):
                return ()
            old = self._forgotten(connection)
            wanted = select(APPENDS).where(old, _C.version.is_(None)).order_by(_C.begun_ms).limit(limit)
            return connection.execute(wanted).all()

        rows = checked(self._transactions.done(read), APPENDS)
        return [(TopicName(row.stream, row.topic), note_of(row)) for row in rows]

    def remove(self, topic: TopicName, note: AppendNote) -> None:
        """Removes an open note, if it is still of this attempt: its run does not commit those records any more."""
        ours = (_C.append_key == note.key, _C.chain == note.chain, _C.run == note.run, _C.after == note.after)
        gone = delete(APPENDS).where(self._of(topic), *ours, _C.version.is_(None))
        self._transactions.done(lambda connection: connection.execute(gone))

    def remove_landed(self, limit: int) -> int:
        """Removes some notes of landed requests that are forgotten; returns how many."""

        def remove(connection: Connection) -> int:
            if not has_table(connection, APPENDS):
                return 0
            old = self._forgotten(connection)
            rows = connection.execute(
                select(*_KEY).where(old, _C.version.is_not(None)).order_by(*_KEY).limit(limit)
            ).all()
            for some in in_parts(rows):
                connection.execute(delete(APPENDS).where(tuple_(*_KEY).in_([tuple(row) for row in some])))
            return len(rows)

        with self._transactions.many_rows:
            return self._transactions.done(remove)

    def _make_tables(self, connection: Connection) -> None:
        known, self._has_tables = self._has_tables, False  # unless it succeeds: the tables may be lost
        if not known:
            make_table(connection, APPENDS)
            make_table(connection, FLOORS)
            first = self._transactions.insert_into(FLOORS).values(scope=self._scope, floor_ms=0)
            connection.execute(first.on_conflict_do_nothing())

    def _read(self, connection: Connection, topic: TopicName, keys: Collection[str]) -> Mapping[str, AppendNote]:
        rows: list[Any] = []
        for some in in_parts(sorted(keys)):
            rows += connection.execute(select(APPENDS).where(self._of(topic), _C.append_key.in_(some)))
        return {row.append_key: note_of(row) for row in checked(rows, APPENDS)}

    def _note_landed(self, connection: Connection, topic: TopicName, run: AppendRun) -> None:
        open_ones = (self._of(topic), _C.run == run.run, _C.version.is_(None))
        connection.execute(update(APPENDS).where(*open_ones).values(version=run.version))

    def _of(self, topic: TopicName) -> Any:
        return and_(_C.scope == self._scope, _C.stream == topic.stream, _C.topic == topic.topic)

    def _forgotten(self, connection: Connection) -> Any:
        """The condition for rows of requests that are forgotten, whatever the clocks of their gateways."""
        floor_ms = connection.execute(self._floor).scalar() if has_table(connection, FLOORS) else None
        return and_(_C.scope == self._scope, _C.begun_ms < (floor_ms or 0) - CLOCKS_DIFFER_MS)

    def _row(self, topic: TopicName, note: AppendNote) -> dict[str, Any]:
        return {
            "scope": self._scope,
            "stream": topic.stream,
            "topic": topic.topic,
            "append_key": note.key,
            "request": note.request,
            "chain": note.chain,
            "run": note.run,
            "after": note.after,
            "places": places_text(note),
            "version": None,
            "begun_ms": note.begun_ms,
        }


def _as_seen(seen: AppendNote, note: AppendNote) -> dict[str, Any]:
    return {
        "seen_append_key": note.key,
        "seen_chain": seen.chain,
        "seen_run": seen.run,
        "seen_after": seen.after,
        "new_chain": note.chain,
        "new_run": note.run,
        "new_after": note.after,
        "new_places": places_text(note),
        "new_begun_ms": note.begun_ms,
    }


def open_append_notes(url: str | None, catalogs: Engine | None, scope: WarehouseScope) -> SqlAppendNotes:
    """The notes of a warehouse, in the database at `url`, else in the catalog's own; connects to none yet.

    Raises `RefusedError` if there is no database that processes share, `CoordinationError` for an invalid URL.
    """
    need = "idempotency keys of appends need an SQL database that the gateways share"
    return SqlAppendNotes(scoped(required_database(url, catalogs, scope.where, need), scope), scope.name)
