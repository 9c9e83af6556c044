"""A daemon in this process, on stores in memory: what it looks at, copies, notes, and what it leaves alone."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from lithify.api.wiring import SystemClock
from lithify.daemons.outages import LEASES
from lithify.daemons.replicas import status
from lithify.daemons.replicas.context import Place, ReplicaContext
from lithify.daemons.replicas.daemon import ReplicaDaemon
from lithify.daemons.replicas.daemon_options import DaemonOptions
from lithify.daemons.replicas.defining import ReplicaRequest, add_replica, change_replica, paused, resumed
from lithify.daemons.replicas.status import replica_statuses
from lithify.errors import CoordinationError, DamagedError, WarehouseError
from lithify.model.cleaner_note import CleanerNote
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.names import TopicName
from lithify.model.record import Record
from lithify.model.replicas.definition import ReplicaDefinition
from lithify.model.replicas.replica_progress import ReplicaStanding
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic, TopicState
from lithify.ports.store import Warehouse
from lithify.reports.replicas.replica_events import ReplicaEvent, ReplicaEventKind
from lithify.service.change.alter import alter
from lithify.service.write.append import append
from lithify.store.iceberg import open_store
from lithify.testing.memory_groups import MemoryGroups
from lithify.testing.memory_store import MemoryWarehouse
from support.store.memory_replicas import MemoryReplicas

PATIENCE_S = 60.0


def a_warehouse() -> Warehouse:
    clock = SystemClock()
    return MemoryWarehouse(clock.new_id, clock.now_ms).with_clock(clock)


@dataclass
class World:
    """A source, targets by name, and what a daemon of it has reported."""

    source: Warehouse = field(default_factory=a_warehouse)
    targets: dict[str, Warehouse] = field(default_factory=lambda: {"/b": a_warehouse(), "/c": a_warehouse()})
    away: dict[str, Callable[[], None]] = field(default_factory=dict)
    """What happens to those who open a target."""
    groups: MemoryGroups = field(default_factory=lambda: MemoryGroups("source"))
    groups_there: MemoryGroups = field(default_factory=lambda: MemoryGroups("/b"))
    groups_away: Callable[[], None] = lambda: None
    """What happens to those who open the groups of a target."""
    replicas: MemoryReplicas = field(default_factory=lambda: MemoryReplicas("source"))
    events: list[ReplicaEvent] = field(default_factory=list)

    @property
    def parts(self) -> ReplicaContext:
        def open_place(place: str) -> Place:
            self.away.get(place, lambda: None)()
            return Place(self.targets[place], WarehouseScope.of(place), lambda: True, open_groups)

        def open_groups() -> MemoryGroups:
            self.groups_away()
            return self.groups_there

        return ReplicaContext(
            self.source,
            WarehouseScope.of("source"),
            self.replicas,
            open_place,
            lambda _: MemoryReplicas("none"),
            lambda: self.groups,
        )

    def fed(self, topic: str = "orders") -> TopicName:
        name = TopicName("default", topic)
        if name not in self.source.store.topics():
            self.source.store.create_topic(NewTopic(name, topic, settings_of({}), 1, self.source.clock.now_ms()))
        append(self.source, name, [Record(key=b"k", value=b"v")])
        return name

    def add(self, topic: str, place: str, **more: object) -> None:
        add_replica(self.parts, ReplicaRequest(topic, place, **more))  # type: ignore[arg-type]

    def daemon(self) -> ReplicaDaemon:
        return ReplicaDaemon(self.parts, DaemonOptions("d", interval_ms=50, lease_ms=600), self.events.append)

    @contextmanager
    def running(self) -> Iterator[ReplicaDaemon]:
        daemon = self.daemon()
        thread = threading.Thread(target=daemon.run)
        thread.start()
        try:
            yield daemon
        finally:
            daemon.stop.ask("the test ends")
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    def has(self, place: str, name: TopicName) -> bool:
        """Whether a target has the newest version."""
        try:
            replica = self.targets[place].store.load(name).replica
        except Exception:
            return False
        return replica is not None and replica.version == self.source.store.load(name).version

    def kinds(self) -> list[ReplicaEventKind]:
        return [event.kind for event in self.events]


def waited(for_what: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not for_what():
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_a_look_at_idle_replicas_loads_no_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    for number in range(20):
        world.fed(f"t{number}")
    world.add("default", "/b")
    loads: list[TopicName] = []
    load = type(world.source.store).load
    with world.running():
        waited(lambda: sum(kind is ReplicaEventKind.COPIED for kind in world.kinds()) == 20)
        time.sleep(0.5)  # their own commits have changed the tokens of the target
        monkeypatch.setattr(type(world.source.store), "load", lambda self, name: loads.append(name) or load(self, name))
        time.sleep(0.5)
        assert loads == []
        name = world.fed("t3")
        waited(lambda: world.has("/b", name))
        assert set(loads) == {name}


def test_a_target_that_hangs_delays_no_other() -> None:
    world = World()
    name, hangs = world.fed(), threading.Event()
    world.add("orders", "/b")
    world.add("orders", "/c")
    world.away["/b"] = lambda: hangs.wait(PATIENCE_S) and None
    with world.running():
        waited(lambda: world.has("/c", name))
        world.fed()
        waited(lambda: world.has("/c", name))
        assert not world.has("/b", name)
        hangs.set()
        waited(lambda: world.has("/b", name))


def test_a_target_that_cannot_be_reached_is_noted_for_all_its_topics_and_reported_once() -> None:
    world = World()
    names = [world.fed(topic) for topic in ("a", "b")]
    world.add("default", "/b")

    def refuses() -> None:
        raise WarehouseError("/b: connection refused")

    world.away["/b"] = refuses
    with world.running():
        waited(lambda: len(world.replicas.progress()) == 2)
        time.sleep(0.3)
    noted = world.replicas.progress()
    assert [one.topic for one in noted] == names
    assert {(one.standing, one.failures, one.error) for one in noted} == {
        (ReplicaStanding.FAILED, 1, "/b: connection refused")
    }
    assert all(one.retry_ms is not None and one.retry_ms > one.updated_ms for one in noted)
    assert world.kinds().count(ReplicaEventKind.TROUBLE) == 1


def test_a_paused_replica_is_left_alone_until_it_is_resumed() -> None:
    world = World()
    name = world.fed()
    world.add("orders", "/b", name="r", paused=True)
    with world.running():
        time.sleep(0.3)
        assert world.targets["/b"].store.topics() == ()
        change_replica(world.parts, "r", resumed)
        waited(lambda: world.has("/b", name))
        change_replica(world.parts, "r", paused)
        time.sleep(0.3)
        world.fed()
        time.sleep(0.3)
        assert not world.has("/b", name)


def test_another_warehouse_under_the_name_of_the_target_gets_nothing() -> None:
    world = World()
    world.fed()
    world.add("orders", "/b", name="r")
    (definition,) = world.replicas.definitions()
    world.replicas.replace(definition, replace(definition, target_scope="what it was"))
    daemon = world.daemon()
    assert daemon.run(once=True) and daemon.failed
    (noted,) = world.replicas.progress()
    assert noted.error is not None and "is not the warehouse to which the replica was added" in noted.error
    assert world.targets["/b"].store.topics() == ()


def test_once_tries_what_waits_for_its_next_try() -> None:
    world = World()
    name = world.fed()
    world.add("orders", "/b")

    def refuses() -> None:
        raise WarehouseError("/b: connection refused")

    world.away["/b"] = refuses
    for failures in (1, 2):
        daemon = world.daemon()
        assert daemon.run(once=True) and daemon.failed
        assert world.replicas.progress()[0].failures == failures
    world.away.clear()
    daemon = world.daemon()
    assert daemon.run(once=True) and not daemon.failed and world.has("/b", name)
    (noted,) = world.replicas.progress()
    assert (noted.standing, noted.failures, noted.error, noted.retry_ms) == (ReplicaStanding.REPLICATING, 0, None, None)


def test_a_source_that_came_back_from_a_backup_is_said_to_have_gone_back_c64(tmp_path: Path) -> None:
    """Also where it has reached the version again that the replica has."""
    folder, clock = tmp_path / "source", SystemClock()
    sides = (Warehouse(*open_store(str(tmp_path / side), None, clock.new_id), clock) for side in ("source", "target"))
    world = World(next(sides), {"/b": next(sides)})
    world.fed()
    shutil.copytree(folder, tmp_path / "backup")
    name = world.fed()
    world.add("orders", "/b")
    world.daemon().run(once=True)
    assert world.has("/b", name)
    shutil.rmtree(folder)
    shutil.move(tmp_path / "backup", folder)
    world.fed()
    for _ in range(2):
        daemon = world.daemon()
        daemon.run(once=True)
        assert daemon.failed
        (failed,) = [event for event in world.events if event.kind is ReplicaEventKind.FAILED]
        assert "the source went back" in failed.facts["error"]
        world.events.clear()


def test_a_listener_that_fails_ends_the_daemon() -> None:
    world = World()
    world.fed()
    world.add("orders", "/b")

    def closed(event: ReplicaEvent) -> None:
        if event.kind is not ReplicaEventKind.STARTED:
            raise BrokenPipeError("the reader has gone")

    daemon = ReplicaDaemon(world.parts, DaemonOptions("d", interval_ms=50), closed)
    thread = threading.Thread(target=daemon.run, kwargs={"once": True})
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert daemon.stop.failed and "its events cannot be written" in daemon.stop.reason


def test_a_daemon_makes_an_idle_replica_compact_by_itself_once_it_is_to_c67() -> None:
    world = World()
    name = world.fed()
    alter(world.source, name, {"cleanup.policy": "delete"})
    world.add("orders", "/b")
    with world.running():
        for wanted in (False, True, False):
            change_replica(world.parts, "orders-to-b", lambda before, wanted=wanted: replace(before, compact=wanted))
            waited(lambda wanted=wanted: world.has("/b", name) and compacts(world, name) is wanted)


def compacts(world: World, name: TopicName) -> bool:
    state = world.targets["/b"].store.load(name)
    return state.replica is not None and state.replica.compacts and state.settings.compacts


DAY_MS = 86_400_000


@pytest.mark.parametrize("off_ms", [-3 * DAY_MS, 3 * DAY_MS], ids=["behind", "ahead"])
def test_whether_a_daemon_runs_is_told_by_its_notes_and_by_no_clock(
    off_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its machine's clock is three days off. Killed, it leaves its last note."""
    monkeypatch.setattr(status, "NOTED_WITHIN_MS", 2_000)
    world = World()
    name = world.fed()
    world.add("orders", "/b")
    kept: list[CleanerNote] = []
    put = world.replicas.leases.put_note

    def off(note: CleanerNote) -> None:
        assert note.looked_ms is not None
        kept.append(replace(note, looked_ms=note.looked_ms + off_ms, started_ms=note.started_ms + off_ms))
        put(kept[-1])

    monkeypatch.setattr(world.replicas.leases, "put_note", off)
    with world.running():
        waited(lambda: world.has("/b", name) and kept)
        waited(lambda: replica_statuses(world.parts)[0].state is ReplicaStanding.REPLICATING)
    assert replica_statuses(world.parts)[0].state is ReplicaStanding.WAITING
    put(kept[-1])
    assert replica_statuses(world.parts)[0].state is ReplicaStanding.WAITING


def test_a_topic_of_a_stream_that_cannot_be_verified_is_a_finding_and_ends_nothing_c50(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    names = [world.fed(topic) for topic in ("a", "b", "c")]
    world.add("default", "/b", name="all")
    assert world.daemon().run(once=True)
    store = type(world.source.store)
    segments = store.segments

    def damaged(self: object, state: TopicState, *more: object) -> object:
        if state.name == names[1]:
            raise DamagedError(f"{state.name}: its manifest is gone")
        return segments(self, state, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "segments", damaged)
    definition = world.parts.definition("all")
    found = status.verify_all(world.parts, definition, lambda _done, _all: None)
    assert [(one.topic, one.clean) for one in found] == [("a", True), ("b", False), ("c", True)]
    (finding,) = found[1].findings
    assert (finding.kind.value, "its manifest is gone" in finding.message) == ("not_verified", True)


def test_of_a_warehouse_that_is_away_verify_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    for topic in ("a", "b"):
        world.fed(topic)
    world.add("default", "/b", name="all")
    assert world.daemon().run(once=True)

    def away(*_: object) -> None:
        raise WarehouseError("/b cannot be reached")

    there = world.targets["/b"].store
    monkeypatch.setattr(there, "load", away)
    monkeypatch.setattr(there, "topics", away)
    with pytest.raises(WarehouseError, match="cannot be reached"):
        status.verify_all(world.parts, world.parts.definition("all"), lambda _done, _all: None)


class Away(MemoryReplicas):
    """A database of replicas that is away at first, for `tries` calls."""

    def __init__(self, tries: int, *, is_outage: bool = True) -> None:
        super().__init__("source")
        self.tries, self.error = tries, CoordinationError("the lease database cannot be used")
        self.error.is_outage = is_outage

    def definitions(self) -> tuple[ReplicaDefinition, ...]:
        if (left := self.tries) > 0:
            self.tries = left - 1
            raise self.error
        return super().definitions()


def test_a_database_that_is_away_again_before_it_has_started_is_waited_for() -> None:
    world = World(replicas=Away(5))
    with world.running():
        waited(lambda: ReplicaEventKind.STARTED in world.kinds())
    told = [ReplicaEventKind.TROUBLE, ReplicaEventKind.RECOVERED, ReplicaEventKind.STARTED, ReplicaEventKind.STOPPED]
    assert world.kinds() == told
    world = World(replicas=Away(10**9))
    with world.running() as daemon:
        waited(lambda: world.events)
    assert (world.kinds(), daemon.stop.failed) == ([ReplicaEventKind.TROUBLE, ReplicaEventKind.STOPPED], False)


def test_an_outage_of_the_database_is_told_once_and_so_is_its_end() -> None:
    """Looks and heartbeats fail in it, with whatever text the driver has for a server that is away."""
    replicas = Away(0)
    world = World(replicas=replicas)
    with world.running():
        waited(lambda: ReplicaEventKind.STARTED in world.kinds())
        for number in range(2):
            replicas.tries = 10**9
            waited(lambda: world.kinds().count(ReplicaEventKind.TROUBLE) == number + 1)  # noqa: B023
            replicas.error = CoordinationError("the lease database cannot be used: in other words")
            failed = replicas.tries
            waited(lambda: replicas.tries < failed - 10)  # noqa: B023
            replicas.tries = 0
            waited(lambda: world.kinds().count(ReplicaEventKind.RECOVERED) == number + 1)  # noqa: B023
    kinds = [ReplicaEventKind.TROUBLE, ReplicaEventKind.RECOVERED] * 2
    assert world.kinds() == [ReplicaEventKind.STARTED, *kinds, ReplicaEventKind.STOPPED]
    assert {event.facts["what"] for event in world.events if event.kind is ReplicaEventKind.RECOVERED} == {LEASES}


@pytest.mark.parametrize(("is_outage", "once"), [(False, False), (True, True)])
def test_a_database_that_cannot_be_used_ends_it_as_does_an_outage_one_run(is_outage: bool, once: bool) -> None:
    world = World(replicas=Away(1, is_outage=is_outage))
    with pytest.raises(CoordinationError):
        world.daemon().run(once=once)
    assert world.events == []
