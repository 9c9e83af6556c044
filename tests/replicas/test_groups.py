"""A daemon in this process that copies positions: when, what it notes, and what it does not wait for (C68)."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from lithify.daemons.replicas import groups as syncing
from lithify.daemons.replicas.defining import ReplicaRequest, add_replica, change_replica
from lithify.daemons.replicas.status import replica_statuses
from lithify.errors import CoordinationError, RefusedError
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.leases import Lease
from lithify.reports.replicas.replica_events import ReplicaEventKind
from lithify.service.replica.promote import promote
from lithify.testing.memory_groups import MemoryGroups
from replicas.test_daemon import World, waited

HELD_S = 0.6


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syncing, "SYNC_MS", 200)


def committed(world: World, name: TopicName, offset: int, group: str = "g", *, there: bool = False) -> None:
    """As a member does."""
    warehouse, groups = (world.targets["/b"], world.groups_there) if there else (world.source, world.groups)
    state, log = warehouse.store.load(name), LogId(name, 0)
    lease = GroupTopic(groups.scope, group, name).partition(0)
    groups.leases.take([Lease(lease, "member", 1)], {})
    position = Position(group, log, Cursor.of(state, state.log(0), offset), False, time.time_ns() // 10**6)
    assert groups.commit([position], "member") == frozenset()
    groups.leases.release("member", [lease])


def offsets(groups: MemoryGroups) -> dict[tuple[str, str], int]:
    return {(p.group, p.log.topic.topic): p.cursor.offset for p in groups.positions()}


def test_positions_follow_while_the_topic_stays_as_it_is() -> None:
    world = World()
    name = world.fed()
    world.add("orders", "/b", sync_groups=True)
    committed(world, name, 0)
    with world.running():
        waited(lambda: offsets(world.groups_there) == {("g", "orders"): 0})
        version = world.targets["/b"].store.load(name).version
        committed(world, name, 1)
        committed(world, name, 1, "h")
        waited(lambda: offsets(world.groups_there) == {("g", "orders"): 1, ("h", "orders"): 1})
        assert world.targets["/b"].store.load(name).version == version
    (position, _) = world.groups_there.positions()
    assert position.cursor.identity == world.targets["/b"].store.load(name).identity
    (status,) = replica_statuses(world.parts)
    assert (status.positions, status.positions_behind, status.positions_error) == (2, 0, None)


@pytest.mark.parametrize("how", ["deleted", "restored"])
@pytest.mark.parametrize("after_s", [0, HELD_S])
def test_a_position_that_the_target_has_lost_follows_again_while_all_else_is_idle(how: str, after_s: float) -> None:
    world = World()
    name, target = world.fed(), world.groups_there
    world.add("orders", "/b", sync_groups=True)
    committed(world, name, 0)
    with world.running():
        waited(lambda: offsets(target) == {("g", "orders"): 0})
        backup = dict(target._positions)
        committed(world, name, 1)
        waited(lambda: offsets(target) == {("g", "orders"): 1})
        time.sleep(after_s)  # with several looks at the tokens, or none
        if how == "deleted":
            lease = GroupTopic(target.scope, "g", name).partition(0)
            target.leases.take([Lease(lease, "person", 1)], {})
            assert target.delete("g", [LogId(name, 0)], "person") == frozenset()
            target.leases.release("person", [lease])
        else:
            with target._lock:
                target._positions.update(backup)
                target.copies._noted.update(backup)
        waited(lambda: offsets(target) == {("g", "orders"): 1})


def test_positions_of_a_topic_that_changes_come_with_its_copies() -> None:
    world = World()
    name = world.fed()
    world.add("default", "/b", sync_groups=True)
    with world.running():
        for offset in range(1, 6):
            world.fed()
            committed(world, name, offset)
            waited(lambda o=offset: offsets(world.groups_there) == {("g", "orders"): o})
            assert world.targets["/b"].store.load(name).log(0).log_end_offset >= offset


def test_positions_come_with_every_copy_of_a_topic_that_names_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only after a look at the tokens: its rounds drop what these groups have read (C61)."""
    monkeypatch.setattr(syncing, "SYNC_MS", 10**9)
    world = World()
    names = {topic: TopicName("default", topic) for topic in ("held", "plain")}
    for topic, config in (("held", {"tombstone.hold.groups": "g"}), ("plain", {})):
        world.source.store.create_topic(
            NewTopic(names[topic], topic, settings_of(config), 1, world.source.clock.now_ms())
        )
        world.fed(topic)
    world.add("default", "/b", sync_groups=True)
    with world.running():
        waited(lambda: all(world.has("/b", name) for name in names.values()))
        for offset in range(1, 4):
            for topic, name in names.items():
                committed(world, name, offset)
                world.fed(topic)
            waited(lambda: all(world.has("/b", name) for name in names.values()))
            waited(lambda o=offset: offsets(world.groups_there) == {("g", "held"): o})


def test_without_the_option_nothing_is_read_or_copied() -> None:
    world = World()
    name = world.fed()
    committed(world, name, 1)
    world.add("orders", "/b", name="r")

    def refuses() -> MemoryGroups:
        raise AssertionError("nobody asked for positions")

    world.groups.tokens = refuses  # type: ignore[assignment, method-assign]
    world.groups_away = refuses
    assert world.daemon().run(once=True)
    del world.groups.tokens
    world.groups_away = lambda: None
    change_replica(world.parts, "r", lambda before: replace(before, sync_groups=True))
    assert world.daemon().run(once=True)
    assert offsets(world.groups_there) == {("g", "orders"): 1}


def test_idle_topics_with_idle_groups_are_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    for number in range(10):
        committed(world, world.fed(f"t{number}"), 1)
    world.add("default", "/b", sync_groups=True)
    loads: list[TopicName] = []
    load = type(world.source.store).load
    with world.running():
        waited(lambda: len(offsets(world.groups_there)) == 10)
        time.sleep(1)  # a look after that finds that nothing is left to do
        monkeypatch.setattr(type(world.source.store), "load", lambda self, name: loads.append(name) or load(self, name))
        time.sleep(HELD_S)  # several looks at the tokens
        assert loads == []
        committed(world, TopicName("default", "t3"), 0)
        waited(lambda: offsets(world.groups_there)["g", "t3"] == 0)
        assert set(loads) == {TopicName("default", "t3")}


def test_a_database_of_the_target_that_is_away_fails_no_copy_and_is_shown() -> None:
    world = World()
    names = [world.fed(topic) for topic in ("a", "b")]
    for name in names:
        committed(world, name, 1)
    world.add("default", "/b", sync_groups=True)
    opened: list[float] = []

    def away() -> None:
        opened.append(time.monotonic())
        raise CoordinationError("the database is away")

    world.groups_away = away
    with world.running():
        waited(lambda: all(world.has("/b", name) for name in names))
        waited(lambda: [noted.groups_error for noted in world.replicas.progress()] == ["the database is away"] * 2)
        assert {noted.error for noted in world.replicas.progress()} == {None}
        trouble = [event for event in world.events if event.kind is ReplicaEventKind.TROUBLE]
        assert [event.facts["error"] for event in trouble] == ["the database is away"]
        assert {status.positions_error for status in replica_statuses(world.parts)} == {"the database is away"}
        world.fed("a")
        waited(lambda: world.has("/b", names[0]))
        world.groups_away = lambda: None
        waited(lambda: len(offsets(world.groups_there)) == 2)
        waited(lambda: {noted.groups_error for noted in world.replicas.progress()} == {None})
    assert ReplicaEventKind.FAILED not in world.kinds()


def test_once_says_that_positions_could_not_be_copied() -> None:
    world = World()
    name = world.fed()
    committed(world, name, 1)
    world.add("orders", "/b", sync_groups=True)

    def away() -> None:
        raise CoordinationError("the database is away")

    world.groups_away = away
    daemon = world.daemon()
    assert daemon.run(once=True) and daemon.failed and world.has("/b", name)
    world.groups_away = lambda: None
    daemon = world.daemon()
    assert daemon.run(once=True) and not daemon.failed
    assert offsets(world.groups_there) == {("g", "orders"): 1}


def test_once_says_that_the_positions_of_the_source_could_not_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    name = world.fed()
    world.add("orders", "/b", sync_groups=True)

    def away() -> None:
        raise CoordinationError("no right to read lithify_positions")

    monkeypatch.setattr(world.groups, "tokens", away)
    daemon = world.daemon()
    assert daemon.run(once=True) and daemon.failed and world.has("/b", name)
    (trouble,) = [event for event in world.events if event.kind is ReplicaEventKind.TROUBLE]
    assert "no right to read" in trouble.facts["error"]


def test_a_partition_that_a_member_at_the_replica_reads_follows_once_it_has_left() -> None:
    world = World()
    name = world.fed()
    committed(world, name, 0)
    world.add("orders", "/b", sync_groups=True)
    lease = GroupTopic(world.groups_there.scope, "g", name).partition(0)
    with world.running():
        waited(lambda: offsets(world.groups_there))
        world.groups_there.leases.take([Lease(lease, "reader", 1)], {})
        committed(world, name, 1)
        time.sleep(HELD_S)
        assert offsets(world.groups_there) == {("g", "orders"): 0}
        world.groups_there.leases.release("reader", [lease])
        waited(lambda: offsets(world.groups_there) == {("g", "orders"): 1})


def test_what_a_group_commits_at_the_replica_stays_and_after_a_promotion_nothing_is_copied() -> None:
    world = World()
    name = world.fed()
    world.add("orders", "/b", sync_groups=True)
    committed(world, name, 1)
    committed(world, name, 1, "h")
    with world.running():
        waited(lambda: len(offsets(world.groups_there)) == 2)
        committed(world, name, 0, there=True)
        committed(world, name, 0, "h")
        waited(lambda: offsets(world.groups_there) == {("g", "orders"): 0, ("h", "orders"): 0})
        (status,) = replica_statuses(world.parts)
        assert (status.positions, status.positions_behind) == (2, 1)
        promote(world.targets["/b"], name)
        committed(world, name, 1, "h")
        time.sleep(HELD_S)
    assert offsets(world.groups_there) == {("g", "orders"): 0, ("h", "orders"): 0}


def test_a_target_without_a_database_of_groups_is_refused() -> None:
    world = World()
    world.fed()

    def none() -> None:
        raise RefusedError("/b: its catalog is not an SQL database")

    world.groups_away = none
    with pytest.raises(RefusedError, match="not an SQL database"):
        add_replica(world.parts, ReplicaRequest("orders", "/b", sync_groups=True))
    assert world.replicas.definitions() == ()
