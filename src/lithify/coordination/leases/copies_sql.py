"""Positions that are copied to a replica, in the database of the groups there (C68).

    fence of the topic     as it was read? one higher, and its row is locked until the end; else another copy was
                           faster, or a promotion, a reset or a deletion has raised it
    rows of a page         locked, so that no member commits in between; compared with what the last copy has noted
    decided                positions and notes written, or removed, together

A row that is not there cannot be locked: it is inserted unless a member was faster, which then has made it its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sqlalchemy import Connection, Table, and_, delete, select, tuple_, update

from lithify.coordination.leases.lease_transactions import Transactions, has_table, make_table
from lithify.coordination.leases.stored_rows import checked
from lithify.coordination.leases.tables.groups import COPIED, FENCES, GROUP_LEASES, POSITIONS, position_of, row_of
from lithify.model.groups.copies import CopiedPositions, Verdict, verdict
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import TopicName
from lithify.ports.groups import NEVER_COPIED

PAGE = 250
"""Positions in one transaction: so long a member's commit waits at most."""

_Key = tuple[str, int]
"""A group and a partition."""
_Positions = Mapping[_Key, Position]


class SqlCopies:
    """`PositionCopies` of the groups of one warehouse."""

    def __init__(self, transactions: Transactions, scope: str) -> None:
        self._transactions, self._scope = transactions, scope
        self._has_tables = False

    def fence(self, topic: TopicName) -> int:
        wanted = select(FENCES).where(self._of(FENCES, topic))

        def read(connection: Connection) -> int:
            make_table(connection, FENCES)  # so that those who raise the fence find it, and need no right to create one
            return next((row.fence for row in checked(connection.execute(wanted), FENCES)), NEVER_COPIED)

        return self._transactions.done(read)

    def raise_fence(self, topic: TopicName) -> None:
        self._transactions.done(lambda connection: raise_fences(self._transactions, connection, self._scope, [topic]))

    def copy(self, topic: TopicName, positions: Sequence[Position], fence: int) -> CopiedPositions:
        wanted = {(position.group, position.log.partition): position for position in positions}
        keys = sorted(wanted.keys() | self._noted(topic))
        done = CopiedPositions()
        for start in range(0, len(keys), PAGE):
            page = {key: wanted.get(key) for key in keys[start : start + PAGE]}
            with self._transactions.many_rows:
                verdicts = self._transactions.done(partial(self._copy_page, topic, page, fence))
            if verdicts is None:
                return CopiedPositions(overtaken=True)
            self._has_tables = True
            fence += 1
            for one in verdicts:
                done = done.with_one(one)
        return done

    def _noted(self, topic: TopicName) -> frozenset[_Key]:
        wanted = select(COPIED.c.consumer_group, COPIED.c.partition).where(self._of(COPIED, topic))

        def read(connection: Connection) -> frozenset[_Key]:
            if not has_table(connection, COPIED):
                return frozenset()
            return frozenset((row[0], row[1]) for row in checked(connection.execute(wanted), COPIED))

        return self._transactions.done(read)

    def _copy_page(
        self, topic: TopicName, page: Mapping[_Key, Position | None], fence: int, connection: Connection
    ) -> list[Verdict] | None:
        """What it did with each position; None if the fence is another one."""
        if not self._passed(topic, fence, connection):
            return None
        stored, noted = (self._page_of(table, topic, page, connection) for table in (POSITIONS, COPIED))
        held = self._held(topic, page, connection)
        changes, verdicts = _Changes(), []
        for key, wanted in page.items():
            verdicts.append(verdict(wanted, stored.get(key), noted.get(key), held=key in held))
            changes.add(verdicts[-1], key, wanted, is_new=key not in stored)
        self._make(changes, topic, connection)
        return verdicts

    def _passed(self, topic: TopicName, fence: int, connection: Connection) -> bool:
        """Whether no other copy was faster; the fence is then one higher, and no other copy comes until the end."""
        for table in () if self._has_tables else (FENCES, POSITIONS, COPIED):
            make_table(connection, table)
        first = {"scope": self._scope, "stream": topic.stream, "topic": topic.topic, "fence": NEVER_COPIED}
        connection.execute(self._transactions.insert_into(FENCES).values(first).on_conflict_do_nothing())
        as_read = update(FENCES).where(self._of(FENCES, topic), FENCES.c.fence == fence)
        return connection.execute(as_read.values(fence=fence + 1)).rowcount == 1

    def _page_of(self, table: Table, topic: TopicName, keys: Iterable[_Key], connection: Connection) -> _Positions:
        """The positions of `keys` that a table has, locked in the order in which members lock them."""
        key = table.c.consumer_group, table.c.partition
        wanted = select(table).where(self._of(table, topic), tuple_(*key).in_(list(keys)))
        rows = connection.execute(wanted.order_by(*key).with_for_update()).all()
        return {(row.consumer_group, row.partition): position_of(row) for row in checked(rows, table)}

    def _held(self, topic: TopicName, keys: Iterable[_Key], connection: Connection) -> frozenset[_Key]:
        """Partitions whose leases members have, or had when they died: then until another member takes them over."""
        if not has_table(connection, GROUP_LEASES):
            return frozenset()
        names = {GroupTopic(self._scope, group, topic).partition(number): (group, number) for group, number in keys}
        rows = connection.execute(select(GROUP_LEASES.c.name).where(GROUP_LEASES.c.name.in_(list(names))))
        return frozenset(names[name] for name in rows.scalars())

    def _make(self, changes: _Changes, topic: TopicName, connection: Connection) -> None:
        write = self._transactions
        if new := [row_of(position, self._scope) for position in changes.new]:
            connection.execute(write.insert_into(POSITIONS).on_conflict_do_nothing(), new)
        if changed := [row_of(position, self._scope) for position in changes.changed]:
            connection.execute(write.upsert_into(POSITIONS), changed)
        if new or changed:
            connection.execute(write.upsert_into(COPIED), [*new, *changed])
        if changes.gone:
            for table in (POSITIONS, COPIED):
                key = tuple_(table.c.consumer_group, table.c.partition)
                connection.execute(delete(table).where(self._of(table, topic), key.in_(changes.gone)))

    def _of(self, table: Table, topic: TopicName) -> Any:
        return and_(table.c.scope == self._scope, table.c.stream == topic.stream, table.c.topic == topic.topic)


def raise_fences(write: Transactions, connection: Connection, scope: str, topics: Iterable[TopicName]) -> None:
    """Raises the fences of some topics, and locks them until the end: before any position, as copies do.

    Without their table no copy has begun.
    """
    for topic in sorted(topics) if has_table(connection, FENCES) else ():
        first = {"scope": scope, "stream": topic.stream, "topic": topic.topic, "fence": NEVER_COPIED + 1}
        raised = write.insert_into(FENCES).values(first)
        one_higher = {"fence": FENCES.c.fence + 1}
        connection.execute(raised.on_conflict_do_update(index_elements=FENCES.primary_key.columns, set_=one_higher))


@dataclass(slots=True)
class _Changes:
    """What one page writes and removes."""

    new: list[Position] = field(default_factory=list)
    changed: list[Position] = field(default_factory=list)
    gone: list[_Key] = field(default_factory=list)

    def add(self, verdict: Verdict, key: _Key, wanted: Position | None, *, is_new: bool) -> None:
        if verdict is Verdict.WRITE and wanted is not None:
            (self.new if is_new else self.changed).append(wanted)
        elif verdict is Verdict.REMOVE:
            self.gone.append(key)
