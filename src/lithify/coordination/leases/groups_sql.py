"""Groups in an SQL database: that of the catalog, or one that its members name.

    lithify_positions      how far each group has read
    lithify_group_leases   who reads, and may commit

A transaction that has written positions reads the leases that it needed, and is rolled back if they are another
owner's. It locks their rows, so that a takeover waits for its end; SQLite, which has no locks of rows, lets one
transaction write at a time. The first commit creates the table of positions, and the first member that of leases:
readers of positions need no right to create tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Engine, and_, delete, func, or_, select

from lithify.coordination.leases.copies_sql import SqlCopies, raise_fences
from lithify.coordination.leases.lease_scopes import SCOPES, others_at, scoped
from lithify.coordination.leases.lease_transactions import (
    Transactions,
    has_table,
    in_parts,
    make_table,
    required_database,
)
from lithify.coordination.leases.sql_coordination import SqlCoordination
from lithify.coordination.leases.stored_rows import checked
from lithify.coordination.leases.tables.groups import GROUP_LEASES, POSITIONS, position_of, row_of
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName
from lithify.ports.groups import PositionCopies, PositionToken
from lithify.ports.leases import Coordination

_MODULUS = 2**31 - 1
"""Sums of a million rows stay below SQLite's largest number."""


class _NotHeldError(Exception):
    """Rolls a transaction back: others hold the leases of these logs, or none does."""

    def __init__(self, logs: frozenset[LogId]) -> None:
        super().__init__(logs)
        self.logs = logs


class SqlGroups:
    """`Groups` of the processes that reach the same database. `former` is the name before `scope`, if it had one."""

    def __init__(self, transactions: Transactions, scope: str, former: str | None = None) -> None:
        self._scope, self._former = scope, former
        self._transactions = transactions
        self._upsert = transactions.upsert_into(POSITIONS)
        self._has_table = False

    @property
    def scope(self) -> str:
        return self._scope

    @cached_property
    def leases(self) -> Coordination:
        return SqlCoordination(self._transactions, table=GROUP_LEASES)

    def positions(self, group: str | None = None, topic: TopicName | None = None) -> tuple[Position, ...]:
        return self._positions(None if group is None else [group], topic)

    def positions_of(self, groups: Collection[str], topic: TopicName | None = None) -> tuple[Position, ...]:
        if not groups:
            return ()
        self._transactions.check_there()
        return self._positions(sorted(groups), topic)

    def _positions(self, groups: Sequence[str] | None, topic: TopicName | None) -> tuple[Position, ...]:
        """Those of some groups, or of all."""
        wanted = select(POSITIONS).where(POSITIONS.c.scope == self._scope)
        if topic is not None:
            wanted = wanted.where(POSITIONS.c.stream == topic.stream, POSITIONS.c.topic == topic.topic)
        of_group = POSITIONS.c.consumer_group
        parts = [wanted] if groups is None else [wanted.where(of_group.in_(some)) for some in in_parts(groups)]

        def read(connection: Connection) -> list[Any]:
            if not has_table(connection, POSITIONS):
                return []
            return [row for part in parts for row in connection.execute(part).all()]

        found = map(position_of, checked(self._transactions.done(read), POSITIONS))
        return tuple(sorted(found, key=lambda position: (position.group, position.log)))

    def elsewhere(self, group: str, topic: TopicName, identity: str) -> tuple[str, ...]:
        def read(connection: Connection) -> set[str]:
            return self._elsewhere(connection, group, topic, [identity])

        return tuple(sorted(self._transactions.done(read)))

    def _elsewhere(self, connection: Connection, group: str, topic: TopicName, identities: Collection[str]) -> set[str]:
        if not has_table(connection, POSITIONS):
            return set()
        wanted = select(POSITIONS.c.scope).distinct().where(_is_in(group, topic), POSITIONS.c.scope != self._scope)
        found = set(connection.execute(wanted.where(POSITIONS.c.identity.in_(identities))).scalars())
        if has_table(connection, SCOPES):
            of_our_place = others_at(connection, self._former or self._scope, self._scope)
            found.update(connection.execute(wanted.where(POSITIONS.c.scope.in_(of_our_place))).scalars())
            taken_over = select(SCOPES.c.scope).where(SCOPES.c.identity == self._scope)
            found.difference_update(connection.execute(taken_over).scalars())
        return found

    def topics_elsewhere(self, group: str) -> frozenset[TopicName]:
        c = POSITIONS.c
        wanted = select(c.stream, c.topic).distinct().where(c.consumer_group == group, c.scope != self._scope)

        def read(connection: Connection) -> Sequence[Any]:
            return connection.execute(wanted).all() if has_table(connection, POSITIONS) else ()

        return frozenset(TopicName(row.stream, row.topic) for row in checked(self._transactions.done(read), POSITIONS))

    @cached_property
    def copies(self) -> PositionCopies:
        return SqlCopies(self._transactions, self._scope)

    def tokens(self) -> Mapping[TopicName, PositionToken]:
        c = POSITIONS.c
        # A commit changes the time, one that a clock which was set back gives the same time changes the offset.
        sums = [func.sum(column % _MODULUS) for column in (c.position, c.committed_ms, c.epoch)]
        of_topic = select(c.stream, c.topic, func.count(), *sums)
        wanted = of_topic.where(c.scope == self._scope).group_by(c.stream, c.topic)

        def read(connection: Connection) -> Sequence[Any]:
            return connection.execute(wanted).all() if has_table(connection, POSITIONS) else ()

        return {TopicName(row[0], row[1]): tuple(map(int, row[2:])) for row in self._transactions.done(read)}

    def commit(self, positions: Sequence[Position], owner: str) -> frozenset[LogId]:
        return self._commit(positions, owner, fenced=())

    def reset(self, positions: Sequence[Position], owner: str) -> frozenset[LogId]:
        return self._commit(positions, owner, fenced={position.log.topic for position in positions})

    def _commit(self, positions: Sequence[Position], owner: str, fenced: Collection[TopicName]) -> frozenset[LogId]:
        # Sorted, so that two writers lock the same rows in the same order.
        rows = [row_of(p, self._scope) for p in sorted(positions, key=lambda position: position.log)]
        leases = self._leases({(p.group, p.log) for p in positions})

        def write(connection: Connection) -> None:
            if fenced:
                raise_fences(self._transactions, connection, self._scope, fenced)
            if not self._has_table:
                make_table(connection, POSITIONS)
            connection.execute(self._upsert, rows)
            _check_held(connection, leases, owner)

        refused = self._refused(write) if rows else frozenset()
        self._has_table = self._has_table or bool(rows and not refused)
        return refused

    def delete(self, group: str, logs: Collection[LogId], owner: str) -> frozenset[LogId]:
        leases, ordered = self._leases({(group, log) for log in logs}), sorted(logs)
        of_group = and_(POSITIONS.c.scope == self._scope, POSITIONS.c.consumer_group == group)
        topics = {log.topic for log in ordered}

        def drop(connection: Connection) -> None:
            raise_fences(self._transactions, connection, self._scope, topics)
            if has_table(connection, POSITIONS):
                for topic in sorted(topics):  # C73: or it comes back once these are taken over
                    ours = select(POSITIONS.c.identity).where(of_group, _is_in(group, topic))
                    others = self._elsewhere(connection, group, topic, connection.execute(ours).scalars().all())
                    connection.execute(delete(POSITIONS).where(_is_in(group, topic), POSITIONS.c.scope.in_(others)))
                for some in in_parts(ordered):
                    connection.execute(delete(POSITIONS).where(of_group, or_(*map(_is_of, some))))
            _check_held(connection, leases, owner)

        return self._refused(drop)

    def _refused(self, write: Callable[[Connection], None]) -> frozenset[LogId]:
        """Does a transaction; the logs for which it was rolled back, or none."""
        try:
            with self._transactions.many_rows:
                self._transactions.done(write)
        except _NotHeldError as refusal:
            return refusal.logs
        return frozenset()

    def _leases(self, logs: Collection[tuple[str, LogId]]) -> Mapping[str, LogId]:
        """By the name of its lease, each log."""
        return {GroupTopic(self._scope, g, log.topic).partition(log.partition): log for g, log in sorted(logs)}


def open_groups(url: str | None, catalogs: Engine | None, scope: WarehouseScope) -> SqlGroups:
    """The groups of a warehouse, in the database at `url`, else in the catalog's own; connects to none yet.

    Raises `RefusedError` where there is no database that processes share, `CoordinationError` for an invalid URL.
    """
    need = "groups need an SQL database that their members share"
    return SqlGroups(scoped(required_database(url, catalogs, scope.where, need), scope), scope.name, scope.former)


def _is_in(group: str, topic: TopicName) -> Any:
    c = POSITIONS.c
    return and_(c.consumer_group == group, c.stream == topic.stream, c.topic == topic.topic)


def _is_of(log: LogId) -> Any:
    return and_(
        POSITIONS.c.stream == log.topic.stream,
        POSITIONS.c.topic == log.topic.topic,
        POSITIONS.c.partition == log.partition,
    )


def _check_held(connection: Connection, leases: Mapping[str, LogId], owner: str) -> None:
    """Raises `_NotHeldError` unless the owner holds all the leases, which then stay its own until the end."""
    held: set[str] = set()
    for some in in_parts(list(leases)):
        ours = select(GROUP_LEASES.c.name).where(GROUP_LEASES.c.owner == owner, GROUP_LEASES.c.name.in_(some))
        held.update(connection.execute(ours.with_for_update(read=True)).scalars())
    if others := frozenset(log for name, log in leases.items() if name not in held):
        raise _NotHeldError(others)
