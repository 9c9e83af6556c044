"""A replica that compacts by itself, in any order with all that its source does, and a replica of it.

    source ──copy──► replica, own rounds ──copy──► a replica of that        each in a warehouse of its own

The oracle knows no views: of every record that the source ever had it remembers where it was, and of each key the last
one wins. At every moment the replica's log is that of its source at one version, its view has the winners below D, and
who reads it to the end, again and again, has no value that was deleted or superseded (C49, C63, C67).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path

from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lithify.errors import LithifyError, LogTruncatedError, RefusedError
from lithify.model.cursor import Cursor
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.own_views import may_compact
from lithify.rules.reading.continuation import advanced
from lithify.rules.reading.pieces import Reading
from lithify.service.change.alter import alter
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from lithify.service.creation import create_warehouse
from lithify.service.proof.verify import verify
from lithify.service.read.fetch import open_log
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror
from lithify.service.replica.promote import promote
from lithify.service.replica.verify import verify_replica
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.memory_files import MemoryFiles
from lithify.testing.oracle_engine import OracleEngine
from lithify.testing.oracle_inspector import OracleInspector
from support.faults.ports import CrashError, Freezer, Injector, Kind, faulty
from support.faults.topics import NAME
from support.topics.replicas import check_same
from support.topics.source_verbs import append_keys, change, cut, three_warehouses

HOUR_MS = 3_600_000
CALLS = st.integers(1, 30)
MANY = [(key, True) for key in range(24)]  # of which later records make few dead, so that rounds write masks
History = dict[int, Record]
"""Every record that a log ever had, by offset, but for those that truncations have removed."""
COMPACTED = Reading(compacted=True)


class OwnCompactionMachine(RuleBasedStateMachine):
    """The three topics, two partitions each."""

    @initialize(
        policy=st.sampled_from(["delete", "delete", "compact"]),
        lag_from=st.sampled_from(["timestamp", "commit"]),
        dead=st.sampled_from([0, 0.5, 1, 1]),
    )
    def create(self, policy: str, lag_from: str, dead: float) -> None:
        self.warehouses, self.clock = three_warehouses("memory", Path())
        source = self.source
        config = {
            "delete.retention.ms": HOUR_MS,
            "versions.retention.ms": HOUR_MS,
            "sweep.grace.ms": HOUR_MS,
            "cleanup.policy": policy,
            "retention.ms": 5 * HOUR_MS,
            "min.compaction.lag.ms": HOUR_MS // 4,
            "min.compaction.lag.from": lag_from,
            "segment.bytes": 1024,
            "segment.max.dead.ratio": dead,
        }
        create_warehouse(source.store)
        source.store.create_topic(NewTopic(NAME, "orders", settings_of(config), 2, self.clock.now_ms()))
        self.wanted = True
        self.histories: dict[int, list[History]] = {source.store.load(NAME).version: [{}, {}]}
        self.plain: dict[int, list[History]] = dict(self.histories)
        self.newest: list[History] = [{}, {}]
        self.reached = 0
        self.tables: list[dict[bytes, Record]] = [{}, {}]
        self.cursors: list[Cursor | None] = [None, None]
        self.began = [0, 0]
        for keys in (MANY, MANY[:3]):
            append_keys(source, keys, self.clock.now_ms())
        self.note()

    @property
    def source(self) -> Warehouse:
        return self.warehouses[0]

    @property
    def replica(self) -> Warehouse:
        return self.warehouses[1]

    def note(self) -> None:
        """What the source has had by now."""
        state = self.source.store.load(NAME)
        read = [by_offset(open_log(self.source, state, partition)) for partition in state.partitions]
        for log, known, here in zip(state.logs, self.newest, read, strict=True):
            before = {o: r for o, r in known.items() if o < log.log_end_offset}
            self.newest[log.partition] = before | here
        self.plain.setdefault(state.version, read)
        self.histories.setdefault(state.version, [dict(history) for history in self.newest])

    @rule(keys=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=6))
    def append(self, keys: list[tuple[int, bool]]) -> None:
        append_keys(self.source, keys, self.clock.now_ms())
        self.note()

    @rule(verb=st.sampled_from(["retain", "retain", "compact", "undo", "expire", "sweep"]))
    def change(self, verb: str) -> None:
        change(self.source, verb, OracleEngine(self.source.files))
        self.note()

    @rule(partition=st.integers(0, 1), back=st.integers(0, 8), front=st.booleans())
    def cut(self, partition: int, back: int, front: bool) -> None:
        cut(self.source, partition, back, front=front)
        self.note()

    @rule(
        config=st.sampled_from(
            [
                {"cleanup.policy": "delete"},
                {"cleanup.policy": "delete"},
                {"cleanup.policy": "compact"},
                {"min.cleanable.dirty.ratio": 0.1},
                {"delete.retention.ms": 0},
                {"delete.retention.ms": HOUR_MS},
                {"retention.ms": -1},
            ]
        )
    )
    def alter(self, config: dict[str, object]) -> None:
        with suppress(RefusedError):
            alter(self.source, NAME, config)
        self.note()

    @rule(by_ms=st.sampled_from([1, HOUR_MS // 2, 2 * HOUR_MS, 6 * HOUR_MS]))
    def wait(self, by_ms: int) -> None:
        self.clock.advance(by_ms)

    @rule(wanted=st.sampled_from([True, True, False]))
    def switch(self, wanted: bool) -> None:
        self.wanted = wanted

    @rule()
    def copy(self) -> None:
        self.mirrored(self.replica)
        check_same(self.source, self.replica)
        state = self.replica.store.load(NAME)
        assert state.replica is not None
        assert (state.replica.compact, state.replica.compacts) == (
            self.wanted,
            self.wanted and may_compact(self.source.store.load(NAME)),
        )

    @precondition(lambda self: self.is_there)
    @rule()
    def copy_of_the_copy(self) -> None:
        mirror(self.replica, self.warehouses[2], NAME, MirrorRequest("there"))
        check_same(self.replica, self.warehouses[2])
        assert verify_replica(self.replica, self.warehouses[2], NAME).findings == ()

    @precondition(lambda self: self.is_there)
    @rule()
    def own_round(self) -> None:
        state = self.replica.store.load(NAME)
        if state.takes_rounds:
            self.rounds(self.replica)
            again = self.replica.store.load(NAME).version
            self.rounds(self.replica)
            assert self.replica.store.load(NAME).version == again  # C41
        else:
            with suppress(RefusedError):
                self.rounds(self.replica)
            assert self.replica.store.load(NAME) == state

    @rule(by_ms=st.sampled_from([HOUR_MS // 2, 2 * HOUR_MS]))
    def copy_and_round(self, by_ms: int) -> None:
        self.clock.advance(by_ms)
        self.mirrored(self.replica)
        if self.replica.store.load(NAME).takes_rounds:
            self.rounds(self.replica)

    @precondition(lambda self: self.is_there)
    @rule(at=CALLS, and_the_source=st.booleans())
    def round_frozen(self, at: int, and_the_source: bool) -> None:
        """Right before a port call of a round a copy lands, of a source that was cut or not."""

        def others() -> None:
            if and_the_source:
                self.cut(at % 2, 3, front=at % 3 == 0)
            self.mirrored(self.replica)

        with suppress(LithifyError):
            self.rounds(faulty(self.replica, Freezer(at, others)))

    @precondition(lambda self: self.is_there)
    @rule(at=CALLS, of_source=st.booleans())
    def copy_frozen(self, at: int, of_source: bool) -> None:
        """Right before a port call of a copy a round of the replica lands."""
        sides = [self.source, self.replica]

        def others() -> None:
            with suppress(RefusedError):
                self.rounds(self.replica)

        sides[not of_source] = faulty(sides[not of_source], Freezer(at, others))
        mirror(*sides, NAME, MirrorRequest("there", compact=self.wanted))
        check_same(self.source, self.replica)

    @rule(at=CALLS, kind=st.sampled_from(Kind), of_round=st.booleans())
    def struck(self, at: int, kind: Kind, of_round: bool) -> None:
        target = faulty(self.replica, Injector(at, kind))
        with suppress(LithifyError, CrashError):
            if of_round and self.is_there:
                compact(target, OracleEngine(self.replica.files), NAME, RunRequest())
            else:
                self.mirrored(target)

    @precondition(lambda self: self.is_there)
    @rule()
    def sweep_replica(self) -> None:
        expire_versions(self.replica, NAME)
        sweep(self.replica, NAME, delete=True, allow_unusual=True)

    @precondition(lambda self: self.is_there and self.reached)  # a copy that never ended is refused
    @rule(with_source=st.booleans())
    def verify(self, with_source: bool) -> None:
        assert verify_replica(self.source if with_source else None, self.replica, NAME).findings == ()
        assert isinstance(self.replica.files, MemoryFiles)
        with suppress(RefusedError):
            found = verify(self.replica, OracleInspector(self.replica.files), NAME).findings
            assert found == ()

    @precondition(lambda self: self.is_there)
    @rule(partition=st.integers(0, 1), most=st.sampled_from([1, 2, 3, 100, 100]))
    def read_on(self, partition: int, most: int) -> None:
        """A reader of compacted data continues, and keeps a table of what it gets (C49)."""
        state = self.replica.store.load(NAME)
        if not state.replica or not state.replica.version:
            return
        log = state.log(partition)
        table, cursor = self.tables[partition], self.cursors[partition]
        try:
            found = list(islice(open_log(self.replica, state, partition, cursor or "earliest", COMPACTED), most))
        except LogTruncatedError:
            self.tables[partition], self.cursors[partition] = {}, None
            return
        if cursor is None:
            self.began[partition] = log.compacted_start
        table.update({record.key: record for record in found if record.key is not None})
        end = log.log_end_offset if len(found) < most or found[-1].offset is None else found[-1].offset + 1
        self.cursors[partition] = (
            Cursor.of(state, log, end) if cursor is None else advanced(cursor, log, state.version, end)
        )
        if end < log.log_end_offset:
            return
        last = winners(self.histories[state.replica.version][partition])
        for key, record in table.items():
            assert key in last, (key, record)
            assert record.offset == last[key].offset, (record, last[key])
        for key, record in last.items():
            if record.value is not None and record.offset >= self.began[partition] and state.replica.compacts:
                assert key in table, record

    @invariant()
    def the_replica_is_as_the_oracle_says(self) -> None:
        if not hasattr(self, "warehouses") or not self.is_there:
            return
        state = self.replica.store.load(NAME)
        assert state.replica is not None
        assert state.replica.is_intact(state.version)
        assert state.replica.version >= self.reached
        self.reached = state.replica.version
        if self.reached:
            self.check(state)

    def check(self, state: TopicState) -> None:
        """The log, and the view where it is the replica's own."""
        assert state.replica is not None
        for log, history in zip(state.logs, self.histories[state.replica.version], strict=True):
            plain = by_offset(open_log(self.replica, state, log.partition))
            assert plain == self.plain[state.replica.version][log.partition]
            if not state.replica.compacts:
                continue
            read = by_offset(open_log(self.replica, state, log.partition, "earliest", COMPACTED))
            last = winners(history)
            assert all(last[key].offset == record.offset for key, record in winners(read).items())  # nothing stale
            assert log.log_start_offset <= log.first_dirty_offset
            below = {offset: record for offset, record in read.items() if offset < log.first_dirty_offset}
            covered = range(log.compacted_start, log.first_dirty_offset)
            wanted = by_offset(winners({o: r for o, r in history.items() if o in covered}).values())
            assert below.items() <= wanted.items()
            assert all(wanted[offset].value is None for offset in wanted.keys() - below.keys())  # expired tombstones
            assert {o: r for o, r in read.items() if o not in below} == {
                o: r for o, r in plain.items() if o >= log.first_dirty_offset
            }

    def teardown(self) -> None:
        """Promoted, it is a topic like any other that is compacted side by side."""
        if not hasattr(self, "warehouses") or not self.is_there:
            return
        state = self.replica.store.load(NAME)
        if not state.replica or not state.replica.version:
            return
        promote(self.replica, NAME)
        promoted = self.replica.store.load(NAME)
        assert (promoted.settings, promoted.own_settings) == (state.settings, state.own_settings)
        append(self.replica, NAME, [Record(b"k0", b"new", self.clock.now_ms(), partition=0)])
        if promoted.settings.compacts:
            self.rounds(self.replica)
            assert isinstance(self.replica.files, MemoryFiles)
            assert verify(self.replica, OracleInspector(self.replica.files), NAME).findings == ()

    @property
    def is_there(self) -> bool:
        return NAME in self.replica.store.topics()

    def mirrored(self, target: Warehouse) -> None:
        mirror(self.source, target, NAME, MirrorRequest("there", compact=self.wanted))

    def rounds(self, warehouse: Warehouse) -> None:
        for log in compact(warehouse, OracleEngine(self.replica.files), NAME, RunRequest()).failed:
            raise AssertionError(log)


def by_offset(records: Iterable[Record]) -> History:
    return {record.offset: record for record in records if record.offset is not None}


def winners(history: History) -> dict[bytes, Record]:
    """Of each key the last record."""
    return {record.key: record for _, record in sorted(history.items()) if record.key is not None}


TestOwnCompaction = OwnCompactionMachine.TestCase
TestOwnCompaction.settings = profile(max_examples=60, stateful_step_count=40, deadline=None)
