"""Groups that read a source and go on at its replica, whatever happened on either side meanwhile (C49, C58, C68).

    source   appends, rounds, truncations; members read and commit, and each keeps a table of what it has read
    daemons  positions read ─► the topic copied ─► positions stored: any of them may be late at any step
    replica  members read there too, it is promoted, and then takes appends and rounds of its own

At every moment a group that goes on at the replica at its position there either gets to exactly the table of all who
read the replica, or is told that it cannot go on: as it would be told at the source.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lithify.errors import LithifyError, RefusedError
from lithify.model.cursor import From
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.leases import Lease
from lithify.ports.store import LogStore, Warehouse
from lithify.rules.reading.continuation import BeyondEnd, Continues, Restored, continuation
from lithify.rules.reading.pieces import Reading
from lithify.service.change.cut import truncate
from lithify.service.read.fetch import open_log
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror
from lithify.service.replica.promote import promote
from lithify.service.replica.replica_positions import ReadPositions, load_between, read_positions, store_positions
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_groups import MemoryGroups
from lithify.testing.oracle_engine import OracleEngine
from support.faults.topics import NAME
from support.topics.replicas import SOURCE, two_warehouses
from support.topics.source_verbs import append_keys, change

HOUR_MS = 3_600_000
PARTITIONS = 2
COMPACTED = Reading(compacted=True)
GROUPS, LOGS = st.sampled_from("gh"), st.integers(0, PARTITIONS - 1)
Table = dict[bytes | None, bytes | None]


@dataclass
class Side:
    """A warehouse and its groups."""

    warehouse: Warehouse
    groups: MemoryGroups

    def stored(self, group: str, partition: int) -> Position | None:
        found = (p for p in self.groups.positions(group, NAME) if p.log.partition == partition)
        return next(found, None)

    def read(self, partition: int, start: From, table: Table, most: int = 1_000) -> tuple[Table, Position]:
        """Reads on; the table afterwards, and the position of no group yet."""
        state = self.warehouse.store.load(NAME)
        reader, table = open_log(self.warehouse, state, partition, start, COMPACTED), dict(table)
        for number, record in enumerate(reader):
            if record.value is None:
                table.pop(record.key, None)
            else:
                table[record.key] = record.value
            if number + 1 == most:
                break
        return table, Position("", LogId(NAME, partition), reader.cursor(), True, 0)

    def goes_on(self, position: Position) -> object:
        state = self.warehouse.store.load(NAME)
        return continuation(position.cursor, state, state.log(position.log.partition), compacted=True)


@dataclass
class Daemon:
    """One that may be frozen after each step: `state` is the version that it copies."""

    state: TopicState
    read: ReadPositions
    copied: bool = False

    def said(self, position: Position) -> object:
        """What a reader at a position would be told at the source, as of that version."""
        log = self.state.log(position.log.partition)
        return continuation(position.cursor, self.state, log, compacted=True)


class CopiedPositionsMachine(RuleBasedStateMachine):
    @initialize(mode=st.sampled_from(["in-place", "side-by-side"]), holds=st.sampled_from(["", "g,h"]))
    def create(self, mode: str, holds: str) -> None:
        source, target = two_warehouses("memory", None)  # type: ignore[arg-type]
        assert isinstance(source.clock, FakeClock)
        self.clock = source.clock
        here, there = MemoryGroups("source"), MemoryGroups("target")
        self.source, self.target = Side(replace(source, groups=here), here), Side(replace(target, groups=there), there)
        config = {"cleanup.policy": "compact", "compaction.mode": mode, "delete.retention.ms": HOUR_MS}
        config |= {"tombstone.hold.groups": holds}
        source.store.create_topic(NewTopic(NAME, "orders", settings_of(config), PARTITIONS, self.clock.now_ms()))
        mirror(source, target, NAME, MirrorRequest(SOURCE))
        self.tables: dict[tuple[str, int], Table] = {}
        self.own: dict[tuple[str, int], Position] = {}
        self.daemons: list[Daemon] = []
        self.commits, self.stores, self.promoted = 0, 0, False
        for _ in range(2):
            self.append([(key, True) for key in range(5)], there=False)
            for group, partition in product("gh", range(PARTITIONS)):
                self.consume(group, partition, 2)

    def side(self, there: bool) -> Side:
        return self.target if there else self.source

    @rule(keys=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=5), there=st.booleans())
    def append(self, keys: list[tuple[int, bool]], there: bool) -> None:
        if self.promoted or not there:
            append_keys(self.side(there).warehouse, keys, self.clock.now_ms())
        self.clock.advance(1)

    @rule(verb=st.sampled_from(["compact", "compact", "undo"]), there=st.booleans())
    def round(self, verb: str, there: bool) -> None:
        warehouse = self.side(there and self.promoted).warehouse
        change(warehouse, verb, OracleEngine(warehouse.files))

    @rule(partition=LOGS, back=st.integers(0, 4), there=st.booleans())
    def cut(self, partition: int, back: int, there: bool) -> None:
        warehouse = self.side(there and self.promoted).warehouse
        log = warehouse.store.load(NAME).log(partition)
        with suppress(RefusedError):
            truncate(warehouse, NAME, partition, max(0, log.log_end_offset - back), below_compacted=True)

    @rule(by_ms=st.sampled_from([1, HOUR_MS // 2, 2 * HOUR_MS]))
    def wait(self, by_ms: int) -> None:
        self.clock.advance(by_ms)

    @rule(group=GROUPS, partition=LOGS, most=st.integers(1, 6))
    def consume(self, group: str, partition: int, most: int) -> None:
        self.commit(self.source, group, partition, most)

    @rule(keys=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=3), group=GROUPS)
    def append_and_consume(self, keys: list[tuple[int, bool]], group: str) -> None:
        self.append(keys, there=False)
        for partition in range(PARTITIONS):
            self.consume(group, partition, 9)

    @rule(group=GROUPS, partition=LOGS, most=st.integers(1, 6))
    def consume_there(self, group: str, partition: int, most: int) -> None:
        self.own[group, partition] = self.commit(self.target, group, partition, most)

    def commit(self, side: Side, group: str, partition: int, most: int) -> Position:
        """A member goes on at the group's position, or starts anew where it cannot; it commits, and ends."""
        stored, start, table = side.stored(group, partition), "earliest", Table()
        if stored is not None and isinstance(side.goes_on(stored), Continues):
            start, table = stored.cursor, self.tables[group, stored.committed_ms]  # type: ignore[assignment]
        table, at = side.read(partition, start, table, most)  # type: ignore[arg-type]
        self.commits += 1
        position = Position(group, at.log, at.cursor, True, self.commits)
        self.tables[group, self.commits] = table
        lease = GroupTopic(side.groups.scope, group, NAME).partition(partition)
        side.groups.leases.take([Lease(lease, "member", self.commits)], {})
        assert side.groups.commit([position], "member") == frozenset()
        side.groups.leases.release("member", [lease])
        return position

    @rule(group=GROUPS, partition=LOGS)
    def delete(self, group: str, partition: int) -> None:
        """At the replica: the group follows its source again."""
        lease = GroupTopic(self.target.groups.scope, group, NAME).partition(partition)
        self.target.groups.leases.take([Lease(lease, "person", 1)], {})
        assert self.target.groups.delete(group, [LogId(NAME, partition)], "person") == frozenset()
        self.stores = self.target.groups.copies.fence(NAME)  # so that a copy which began earlier brings none back
        self.target.groups.leases.release("person", [lease])
        self.own.pop((group, partition), None)

    @rule()
    def begin(self) -> None:
        """A daemon reads a version and its positions."""
        self.daemons.append(Daemon(*self.loaded()))

    def loaded(self) -> tuple[TopicState, ReadPositions]:
        store = self.source.warehouse.store
        read = partial(read_positions, self.source.groups, self.target.groups, NAME)
        return load_between(store, store.load(NAME), read)

    @precondition(lambda self: not all(daemon.copied for daemon in self.daemons))
    @rule(which=st.integers(0, 9))
    def copy(self, which: int) -> None:
        waiting = [daemon for daemon in self.daemons if not daemon.copied]
        self.copied(waiting[which % len(waiting)])

    def copied(self, daemon: Daemon) -> None:
        first = iter([daemon.state])

        def load(_store: LogStore, _name: TopicName) -> TopicState:
            if next(first, None) is None:  # another one was faster
                daemon.state, daemon.read = self.loaded()
            return daemon.state

        try:
            mirror(self.source.warehouse, self.target.warehouse, NAME, MirrorRequest(SOURCE, load=load))
            daemon.copied = True
        except LithifyError:
            assert self.promoted
            self.daemons.remove(daemon)

    @precondition(lambda self: any(daemon.copied for daemon in self.daemons))
    @rule(which=st.integers(0, 9))
    def store(self, which: int) -> None:
        copied = [daemon for daemon in self.daemons if daemon.copied]
        daemon = copied[which % len(copied)]
        self.daemons.remove(daemon)
        self.stored(daemon)

    @rule()
    def all_at_once(self) -> None:
        """A daemon that nothing delays; it leaves the positions as they are at the source."""
        if not self.promoted:
            self.begin()
            self.copied(self.daemons[-1])
            self.stored(self.daemons.pop())
            for position in self.source.groups.positions():
                ours = self.target.stored(position.group, position.log.partition)
                assert ours is not None
                if (position.group, position.log.partition) not in self.own:
                    assert ours.committed_ms == position.committed_ms
                    assert self.target.goes_on(ours) == self.source.goes_on(position)

    def stored(self, daemon: Daemon) -> None:
        before = self.target.groups.positions()
        done = store_positions(daemon.read, self.target.warehouse, self.target.groups)
        if self.promoted or daemon.read.fence != self.stores:
            assert self.target.groups.positions() == before, "it was late"
        elif not done.overtaken:
            self.stores = self.target.groups.copies.fence(NAME)
            self.are_told_the_same(daemon)

    def are_told_the_same(self, daemon: Daemon) -> None:
        """A group is told at the replica what it would have been told at the source as of the version it has."""
        replica = self.target.warehouse.store.load(NAME).replica
        if replica is not None and replica.version == daemon.state.version:
            for position in daemon.read.positions:
                ours = self.target.stored(position.group, position.log.partition)
                if ours is not None and (position.group, position.log.partition) not in self.own:
                    assert self.target.goes_on(ours) == daemon.said(position)

    @precondition(lambda self: not self.promoted)
    @rule()
    def promote(self) -> None:
        with suppress(RefusedError):
            promote(self.target.warehouse, NAME, self.target.groups.copies)
            self.promoted = True

    @invariant()
    def groups_own_positions_stay(self) -> None:
        if hasattr(self, "own"):
            for (group, partition), position in self.own.items():
                assert self.target.stored(group, partition) == position

    @invariant()
    def who_goes_on_at_the_replica_misses_nothing(self) -> None:
        if not hasattr(self, "own"):
            return
        for position in self.target.groups.positions():
            found = self.target.goes_on(position)
            assert not isinstance(found, BeyondEnd | Restored), "it came before the copy that it belongs to"
            if isinstance(found, Continues):
                partition, known = position.log.partition, self.tables[position.group, position.committed_ms]
                table, _ = self.target.read(partition, position.cursor, known)
                assert table == self.target.read(partition, "earliest", {})[0], position


CopiedPositionsMachine.TestCase.settings = profile(max_examples=80, stateful_step_count=40, deadline=None)
TestCopiedPositions = CopiedPositionsMachine.TestCase
