"""Replicas in an SQL database: the catalog's, or one that their daemons name.

    lithify_replicas         scope, name (primary key)                  stream   topic   target   ...
    lithify_replica_topics   scope, replica, stream, topic (primary key)   standing   version   ...
    lithify_replica_leases   name (primary key)                         owner   beats

The first definition creates the tables: who only reads needs no right to create any. What is noted of topics is
stored only in a transaction that finds their definition, and removed with it, so that a daemon which has not yet
seen the removal brings nothing back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Engine, and_, delete, or_, select, update

from lithify.coordination.leases.lease_scopes import note_place, others_at, scoped
from lithify.coordination.leases.lease_transactions import (
    Transactions,
    has_table,
    in_parts,
    make_table,
    required_database,
)
from lithify.coordination.leases.sql_coordination import SqlCoordination
from lithify.coordination.leases.stored_rows import checked, unreadable
from lithify.coordination.leases.tables.replicas import PROGRESS, REPLICA_LEASES, REPLICAS
from lithify.errors import CoordinationError
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.replica_progress import ReplicaStanding, TopicProgress
from lithify.ports.leases import Coordination


class SqlReplicas:
    """`Replicas` of the processes that reach the same database. `former` is the name before `scope`, if it had one."""

    def __init__(self, transactions: Transactions, scope: str, former: str | None = None) -> None:
        self._scope, self._former = scope, former
        self._transactions = transactions
        self._upsert = transactions.upsert_into(PROGRESS)

    @property
    def scope(self) -> str:
        return self._scope

    @cached_property
    def leases(self) -> Coordination:
        return SqlCoordination(self._transactions, table=REPLICA_LEASES)

    def definitions(self) -> tuple[ReplicaDefinition, ...]:
        definitions = self._definitions(select(REPLICAS).where(REPLICAS.c.scope == self._scope))
        if not definitions:
            self._check_not_elsewhere()
        return definitions

    def _check_not_elsewhere(self) -> None:
        """Raises `CoordinationError` if the place has definitions under a name that this warehouse has not (C73)."""
        if (former := self._former) is None:
            return

        def read(connection: Connection) -> Sequence[str]:
            names = others_at(connection, former, self._scope)
            if not names or not has_table(connection, REPLICAS):
                return ()
            return (
                connection.execute(select(REPLICAS.c.scope).where(REPLICAS.c.scope.in_(names)).limit(1)).scalars().all()
            )

        if there := self._transactions.done(read):
            raise CoordinationError(
                f"warehouse {self._scope} has no replicas, but the database has replicas of the warehouse that was "
                f"{former} before, {there[0]}",
                hint="if its catalog has lost that identity, restore it: see `A lost identity` in "
                "docs/recover/repair.md; if it is another warehouse, run `lithify replica add TOPIC --to DIR`",
            )

    def know(self, other: WarehouseScope) -> None:
        """Another warehouse: what versions before have called it by its place is its own from then on."""
        scoped(self._transactions, other)

    def into(self, target_scope: str) -> tuple[ReplicaDefinition, ...]:
        return self._definitions(select(REPLICAS).where(REPLICAS.c.target_scope == target_scope))

    def add(self, definition: ReplicaDefinition) -> bool:
        row = _row(definition) | {"scope": self._scope}
        insert = self._transactions.insert_into(REPLICAS).values(row).on_conflict_do_nothing()

        def add(connection: Connection) -> bool:
            make_table(connection, REPLICAS)
            make_table(connection, PROGRESS)
            connection.execute(insert)
            if self._former is not None:
                note_place(self._transactions, connection, self._former, self._scope)
            # Compared, not counted: a transaction that is done twice finds its own row.
            stored = connection.execute(select(REPLICAS).where(self._named(definition.name))).one()
            if dict(stored._mapping) != row:
                return False
            connection.execute(delete(PROGRESS).where(self._of(definition.name)))  # of a removed one of this name
            return True

        return self._transactions.done(add)

    def replace(self, before: ReplicaDefinition, after: ReplicaDefinition) -> bool:
        old, new = _row(before), _row(after)
        as_before = [REPLICAS.c[column].is_not_distinct_from(value) for column, value in old.items()]

        def replace(connection: Connection) -> bool:
            if not has_table(connection, REPLICAS):
                return False
            connection.execute(update(REPLICAS).where(*as_before).values(new))
            stored = connection.execute(select(REPLICAS).where(self._named(before.name))).one_or_none()
            return stored is not None and dict(stored._mapping) == new

        return self._transactions.done(replace)

    def remove(self, name: str) -> bool:
        def remove(connection: Connection) -> bool:
            if not has_table(connection, REPLICAS):
                return False
            connection.execute(delete(PROGRESS).where(self._of(name)))
            return connection.execute(delete(REPLICAS).where(self._named(name))).rowcount > 0

        return self._transactions.done(remove)

    def progress(self) -> tuple[TopicProgress, ...]:
        # In SQLite, which locks no rows, `note` may come after the removal of a definition.
        exists = select(REPLICAS.c.name).where(REPLICAS.c.scope == self._scope)
        wanted = select(PROGRESS).where(PROGRESS.c.scope == self._scope, PROGRESS.c.replica.in_(exists))

        def read(connection: Connection) -> Sequence[Any]:
            return connection.execute(wanted).all() if has_table(connection, PROGRESS) else ()

        notes = map(_progress, checked(self._transactions.done(read), PROGRESS))
        return tuple(sorted(notes, key=lambda progress: (progress.replica, progress.topic)))

    def note(self, progress: Sequence[TopicProgress]) -> None:
        rows = [self._noted(p) for p in sorted(progress, key=lambda progress: (progress.replica, progress.topic))]
        existing = select(REPLICAS.c.name).where(REPLICAS.c.scope == self._scope).with_for_update(read=True)

        def note(connection: Connection) -> None:
            names = frozenset(connection.execute(existing).scalars())
            if wanted := [row for row in rows if row["replica"] in names]:
                connection.execute(self._upsert, wanted)

        if rows:
            with self._transactions.many_rows:
                self._transactions.done(note)

    def forget(self, replica: str, topics: Collection[TopicName]) -> None:
        ordered = sorted(topics)

        def forget(connection: Connection) -> None:
            for some in in_parts(ordered):
                connection.execute(delete(PROGRESS).where(self._of(replica), or_(*map(_is_of, some))))

        if ordered:
            with self._transactions.many_rows:
                self._transactions.done(forget)

    def _definitions(self, wanted: Any) -> tuple[ReplicaDefinition, ...]:
        def read(connection: Connection) -> Sequence[Any]:
            return connection.execute(wanted).all() if has_table(connection, REPLICAS) else ()

        definitions = map(_definition, checked(self._transactions.done(read), REPLICAS))
        return tuple(sorted(definitions, key=lambda definition: (definition.scope, definition.name)))

    def _named(self, name: str) -> Any:
        return and_(REPLICAS.c.scope == self._scope, REPLICAS.c.name == name)

    def _of(self, replica: str) -> Any:
        return and_(PROGRESS.c.scope == self._scope, PROGRESS.c.replica == replica)

    def _noted(self, progress: TopicProgress) -> dict[str, Any]:
        return {
            "scope": self._scope,
            "replica": progress.replica,
            "stream": progress.topic.stream,
            "topic": progress.topic.topic,
            "standing": progress.standing.value,
            "updated_ms": progress.updated_ms,
            "daemon": progress.daemon,
            "version": progress.version,
            "behind_since_ms": progress.behind_since_ms,
            "copied_bytes": progress.copied_bytes,
            "to_copy_bytes": progress.to_copy_bytes,
            "failures": progress.failures,
            "error": progress.error,
            "retry_ms": progress.retry_ms,
            "groups_error": progress.groups_error,
        }


def open_replicas(url: str | None, catalogs: Engine | None, scope: WarehouseScope) -> SqlReplicas:
    """The replicas of a warehouse, in the database at `url`, else in the catalog's own; connects to none yet.

    Raises `RefusedError` if there is no database that processes share, `CoordinationError` for an invalid URL.
    """
    need = "replicas need an SQL database that their daemons share"
    return SqlReplicas(scoped(required_database(url, catalogs, scope.where, need), scope), scope.name, scope.former)


def _row(definition: ReplicaDefinition) -> dict[str, Any]:
    return {column.name: getattr(definition, column.name) for column in REPLICAS.columns}


def _definition(row: Any) -> ReplicaDefinition:
    if row.throttle_bytes == 0:  # which would copy nothing for ever
        raise unreadable(REPLICAS, row._asdict(), REPLICAS.c.throttle_bytes.name)
    return ReplicaDefinition(**row._mapping)


def _progress(row: Any) -> TopicProgress:
    given = dict(row._mapping)
    if row.standing not in {*ReplicaStanding}:
        raise unreadable(PROGRESS, given, PROGRESS.c.standing.name)
    del given["scope"]
    topic = TopicName(given.pop("stream"), given.pop("topic"))
    return TopicProgress(**given | {"topic": topic, "standing": ReplicaStanding(row.standing)})


def _is_of(topic: TopicName) -> Any:
    return and_(PROGRESS.c.stream == topic.stream, PROGRESS.c.topic == topic.topic)
