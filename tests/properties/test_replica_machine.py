"""A source to which any verb is done in any order, and two replicas, the second of the first, with bad luck.

    source ──copy──► replica ──copy──► replica of the replica        each in a warehouse of its own

At every moment each replica is what the source was at the version that it says it has (C63), whatever copies were
struck, stopped, or overtaken by sweeps on either side; and copies that get through make it the newest (C64, C65).
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lithify.errors import LithifyError, RefusedError
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.reports.replicas import MirrorReport
from lithify.service.change.alter import alter
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from lithify.service.creation import create_warehouse
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import lag, mirror
from lithify.service.replica.verify import verify_replica
from lithify.service.round.compact import RunRequest, compact
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import CrashError, Freezer, Injector, Kind, faulty
from support.faults.topics import NAME, picture
from support.topics.replicas import check_same
from support.topics.source_verbs import append_keys, change, cut, three_warehouses

HOUR_MS = 3_600_000
SETTINGS = {"delete.retention.ms": HOUR_MS, "versions.retention.ms": HOUR_MS, "sweep.grace.ms": HOUR_MS}
SIDES = st.sampled_from([0, 1])  # of the two copies: into the first replica, into the second
CALLS = st.integers(1, 30)
MANY = [(key, True) for key in range(24)]  # of which later records make few dead, so that rounds write masks


class ReplicaMachine(RuleBasedStateMachine):
    """The three topics. Subclasses say on which store."""

    kind = "memory"

    @initialize(
        mode=st.sampled_from(["in-place", "side-by-side"]),
        policy=st.sampled_from(["compact", "compact,delete"]),
        strategy=st.sampled_from(["offset", "timestamp"]),
        dead=st.sampled_from([0, 0.5, 1, 1]),
    )
    def create(self, mode: str, policy: str, strategy: str, dead: float) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.warehouses, self.clock = three_warehouses(self.kind, self.folder)
        source = self.source
        config = {
            **SETTINGS,
            "compaction.mode": mode,
            "cleanup.policy": policy,
            "compaction.strategy": strategy,
            "retention.ms": 5 * HOUR_MS,
            "segment.bytes": 1024,
            "segment.max.dead.ratio": dead,
        }
        create_warehouse(source.store)
        source.store.create_topic(NewTopic(NAME, "orders", settings_of(config), 2, self.clock.now_ms()))
        self.engine = OracleEngine(source.files)
        self.pictures: list[dict[int, object]] = [{}, {}]
        self.reached = [0, 0]
        for keys in (MANY, MANY[:3]):
            append_keys(source, keys, self.clock.now_ms())
        self.note()

    def teardown(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def source(self) -> Warehouse:
        return self.warehouses[0]

    def note(self) -> None:
        """What the topics that are copied look like at their newest versions."""
        for side in (0, 1):
            with suppress(LithifyError):
                state = self.warehouses[side].store.load(NAME)
                self.pictures[side].setdefault(state.version, picture(self.warehouses[side]))

    @rule(keys=st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=6))
    def append(self, keys: list[tuple[int, bool]]) -> None:
        append_keys(self.source, keys, self.clock.now_ms())
        self.note()

    @rule(verb=st.sampled_from(["compact", "compact", "undo", "retain", "uncompact", "expire", "sweep"]))
    def change(self, verb: str) -> None:
        change(self.source, verb, self.engine)
        self.note()

    @rule(partition=st.integers(0, 1), back=st.integers(0, 6), front=st.booleans())
    def cut(self, partition: int, back: int, front: bool) -> None:
        cut(self.source, partition, back, front=front)
        self.note()

    @rule(name=st.sampled_from(["empty.value", "min.cleanable.dirty.ratio", "partitions", "compaction.mode"]))
    def alter(self, name: str) -> None:
        state = self.source.store.load(NAME)
        with suppress(RefusedError):
            match name:
                case "partitions":
                    alter(self.source, NAME, {}, partitions=min(4, len(state.logs) + 1))
                case "compaction.mode":
                    mode = "in-place" if state.settings.side_by_side else "side-by-side"
                    alter(self.source, NAME, {name: mode})
                case "empty.value":
                    alter(self.source, NAME, {name: "tombstone" if state.version % 2 else "value"})
                case _:
                    alter(self.source, NAME, {name: state.version % 10 / 10})
        self.note()

    @rule(by_ms=st.sampled_from([1, HOUR_MS // 2, 2 * HOUR_MS, 6 * HOUR_MS]))
    def wait(self, by_ms: int) -> None:
        self.clock.advance(by_ms)

    @rule(side=SIDES)
    def copy(self, side: int) -> None:
        if side and not self.is_there(1):
            return
        behind = lag(self.warehouses[side], self.warehouses[side + 1], NAME, "there")
        report = self.mirrored(self.warehouses[side], self.warehouses[side + 1])
        assert report.bytes_copied + report.bytes_reused == behind.lag_bytes
        check_same(self.warehouses[side], self.warehouses[side + 1])

    @rule(side=SIDES, at=CALLS, kind=st.sampled_from(Kind), of_source=st.booleans())
    def copy_struck(self, side: int, at: int, kind: Kind, of_source: bool) -> None:
        """A port call of the copy fails, loses its answer, or the process dies at it."""
        if side and not self.is_there(1):
            return
        both = [self.warehouses[side], self.warehouses[side + 1]]
        both[not of_source] = faulty(both[not of_source], Injector(at, kind))
        with suppress(LithifyError, CrashError):
            self.mirrored(*both)
        self.note()

    @rule(side=SIDES, after=st.integers(0, 4))
    def copy_stopped(self, side: int, after: int) -> None:
        if side and not self.is_there(1):
            return
        pieces: list[int] = []
        request = MirrorRequest("there", acquire=pieces.append, stops=lambda: len(pieces) >= after)
        mirror(self.warehouses[side], self.warehouses[side + 1], NAME, request)
        self.note()

    @rule(side=SIDES, at=CALLS, meanwhile=st.sampled_from(["sweep target", "sweep source", "copy", "compact"]))
    def copy_frozen(self, side: int, at: int, meanwhile: str) -> None:
        """Right before a port call of the copy, hours pass in which others work; it goes on as if nothing had been."""
        if side and not self.is_there(1):
            return
        source, target = self.warehouses[side], self.warehouses[side + 1]

        def others() -> None:
            self.clock.advance(2 * HOUR_MS)
            match meanwhile:
                case "sweep target":
                    if self.is_there(side + 1):
                        expire_versions(target, NAME)
                        sweep(target, NAME, delete=True, allow_unusual=True)
                case "sweep source":
                    expire_versions(source, NAME)
                    sweep(source, NAME, delete=True, allow_unusual=True)
                case "copy":
                    self.mirrored(source, target)
                case "compact":
                    compact(self.source, self.engine, NAME, RunRequest())
                    self.note()

        with suppress(LithifyError):
            self.mirrored(source, faulty(target, Freezer(at, others)))
        self.note()

    @rule(side=SIDES)
    def sweep_replica(self, side: int) -> None:
        if self.is_there(side + 1):
            expire_versions(self.warehouses[side + 1], NAME)
            sweep(self.warehouses[side + 1], NAME, delete=True, allow_unusual=True)
            self.note()

    @precondition(lambda self: self.is_there(1) and self.reached[0])  # a copy that never ended is refused
    @rule(with_source=st.booleans())
    def verify(self, with_source: bool) -> None:
        report = verify_replica(self.source if with_source else None, self.warehouses[1], NAME)
        assert report.findings == ()

    @invariant()
    def each_replica_is_its_source_at_one_version(self) -> None:
        """C63, and it never goes back."""
        for side in (0, 1):
            if self.is_there(side + 1):
                state = self.warehouses[side + 1].store.load(NAME)
                assert state.replica is not None
                assert state.replica.is_intact(state.version)
                assert state.replica.version >= self.reached[side]
                self.reached[side] = state.replica.version
                if state.replica.version:
                    assert picture(self.warehouses[side + 1]) == self.pictures[side][state.replica.version]

    def is_there(self, number: int) -> bool:
        return NAME in self.warehouses[number].store.topics()

    def mirrored(self, source: Warehouse, target: Warehouse) -> MirrorReport:
        try:
            return mirror(source, target, NAME, MirrorRequest("there"))
        finally:
            self.note()


class IcebergReplicaMachine(ReplicaMachine):
    """The same on tables of Iceberg."""

    kind = "iceberg"


TestReplicas = ReplicaMachine.TestCase
TestReplicas.settings = profile(max_examples=60, stateful_step_count=30, deadline=None)
TestIcebergReplicas = IcebergReplicaMachine.TestCase
TestIcebergReplicas.settings = profile(max_examples=4, stateful_step_count=14, deadline=None)
