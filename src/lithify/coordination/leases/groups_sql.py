"""Groups in an SQL database: the catalog's, or one that its members name.

    lithify_positions      how far each group has read
    lithify_group_leases   who reads, and may commit

A transaction that has written positions reads the leases that it needed, and is rolled back if they are another
owner's. It locks their rows, so that a takeover waits for its end; SQLite, which has no locks of rows, lets one
transaction write at a time. The first commit creates the table of positions, and the first member the table of leases:
readers of positions need no right to create tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Engine, Table, and_, delete, func, or_, select

from lithify.coordination.leases.copies_sql import SqlCopies, raise_fences
from lithify.coordination.leases.lease_scopes import SCOPES, others_at, scoped
from lithify.coordination.leases.lease_transactions import (
    Transactions,
    has_table,
    in_parts,
    make_table,
    required_database,
)
from lithify.coordination.leases.runs_sql import SqlRuns
from lithify.coordination.leases.sql_coordination import SqlCoordination
from lithify.coordination.leases.stored_rows import checked
from lithify.coordination.leases.tables.groups import GROUP_LEASES, POSITIONS, position_of, row_of, with_runs
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName
from lithify.ports.groups import PositionCopies, PositionToken
from lithify.ports.leases import Coordination

_MODULUS = 2**31 - 1
"""Sums of a million rows remain below SQLite's largest number."""


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
        self._runs = SqlRuns(transactions, scope)
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
        """The positions of some groups, or of all."""

        def where(table: Table) -> list[Any]:
            ours = [table.c.scope == self._scope]
            if topic is not None:
                ours += [table.c.stream == topic.stream, table.c.topic == topic.topic]
            return [and_(*ours, *some) for some in _of_groups(table, groups)]

        def read(connection: Connection) -> tuple[list[Any], Sequence[Any]]:
            if not has_table(connection, POSITIONS):
                return [], ()
            rows = [row for some in where(POSITIONS) for row in connection.execute(select(POSITIONS).where(some))]
            return rows, self._runs.read(connection, where)

        rows, runs = self._transactions.done(read)
        positions = with_runs(map(position_of, checked(rows, POSITIONS)), runs)
        return tuple(sorted(positions, key=lambda position: (position.group, position.log)))

    def elsewhere(self, group: str, topic: TopicName, identity: str) -> tuple[str, ...]:
        def read(connection: Connection) -> set[str]:
            return self._elsewhere(connection, group, topic, [identity])

        return tuple(sorted(self._transactions.done(read)))

    def _elsewhere(self, connection: Connection, group: str, topic: TopicName, identities: Collection[str]) -> set[str]:
        if not has_table(connection, POSITIONS):
            return set()
        wanted = select(POSITIONS.c.scope).distinct().where(_is_in(group, topic), POSITIONS.c.scope != self._scope)
        scopes = set(connection.execute(wanted.where(POSITIONS.c.identity.in_(identities))).scalars())
        if has_table(connection, SCOPES):
            of_our_place = others_at(connection, self._former or self._scope, self._scope)
            scopes.update(connection.execute(wanted.where(POSITIONS.c.scope.in_(of_our_place))).scalars())
            taken_over = select(SCOPES.c.scope).where(SCOPES.c.identity == self._scope)
            scopes.difference_update(connection.execute(taken_over).scalars())
        return scopes

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
            known, self._has_table = self._has_table, False  # unless it succeeds: the table may be lost
            if not known:
                make_table(connection, POSITIONS)
            connection.execute(self._upsert, rows)
            self._runs.write(connection, positions)
            _check_held(connection, leases, owner)

        refused = self._refused(write) if rows else frozenset()
        if rows and not refused:
            self._has_table = True
            self._runs.committed()
        return refused

    def delete(self, group: str, logs: Collection[LogId], owner: str) -> frozenset[LogId]:
        leases, ordered = self._leases({(group, log) for log in logs}), sorted(logs)
        of_group = and_(POSITIONS.c.scope == self._scope, POSITIONS.c.consumer_group == group)
        topics = {log.topic for log in ordered}

        def where(table: Table) -> list[Any]:
            ours = and_(table.c.scope == self._scope, table.c.consumer_group == group)
            return [and_(ours, or_(*(_is_of(table, log) for log in some))) for some in in_parts(ordered)]

        def drop(connection: Connection) -> None:
            raise_fences(self._transactions, connection, self._scope, topics)
            if has_table(connection, POSITIONS):
                for topic in sorted(topics):  # C73: or it comes back once these are taken over
                    ours = select(POSITIONS.c.identity).where(of_group, _is_in(group, topic))
                    others = self._elsewhere(connection, group, topic, connection.execute(ours).scalars().all())
                    connection.execute(delete(POSITIONS).where(_is_in(group, topic), POSITIONS.c.scope.in_(others)))
                for some in where(POSITIONS):
                    connection.execute(delete(POSITIONS).where(some))
                self._runs.delete(connection, where)
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

    Raises `RefusedError` if there is no database that processes share, `CoordinationError` for an invalid URL.
    """
    need = "groups need an SQL database that their members share"
    return SqlGroups(scoped(required_database(url, catalogs, scope.where, need), scope), scope.name, scope.former)


def _is_in(group: str, topic: TopicName) -> Any:
    c = POSITIONS.c
    return and_(c.consumer_group == group, c.stream == topic.stream, c.topic == topic.topic)


def _of_groups(table: Table, groups: Sequence[str] | None) -> list[list[Any]]:
    """By statement, the conditions for rows of some groups; of all of them, where none are named, there are none."""
    return [[]] if groups is None else [[table.c.consumer_group.in_(some)] for some in in_parts(groups)]


def _is_of(table: Table, log: LogId) -> Any:
    c = table.c
    return and_(c.stream == log.topic.stream, c.topic == log.topic.topic, c.partition == log.partition)


def _check_held(connection: Connection, leases: Mapping[str, LogId], owner: str) -> None:
    """Raises `_NotHeldError` unless the owner holds all the leases, which then remain its own until the end."""
    held: set[str] = set()
    for some in in_parts(list(leases)):
        ours = select(GROUP_LEASES.c.name).where(GROUP_LEASES.c.owner == owner, GROUP_LEASES.c.name.in_(some))
        held.update(connection.execute(ours.with_for_update(read=True)).scalars())
    if others := frozenset(log for name, log in leases.items() if name not in held):
        raise _NotHeldError(others)
