"""What every place for definitions of replicas does, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from leases.conftest import SHARED
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.coordination.leases.replicas_sql import SqlReplicas, open_replicas
from lithify.errors import InvalidNameError, RefusedError
from lithify.model.formats.warehouse_scope import WarehouseScope
from lithify.model.names import TopicName
from lithify.model.replicas.definition import ReplicaDefinition, checked_replica, default_name
from lithify.model.replicas.replica_progress import ReplicaStanding, TopicProgress
from lithify.ports.leases import Lease
from lithify.ports.replicas import Replicas
from support.servers.postgres import Postgres
from support.store.memory_replicas import MemoryReplicas

SCOPE, OTHER = "file:///lake", "s3://other@lake"
ORDERS, CLICKS = TopicName("default", "orders"), TopicName("web", "clicks")
Open = Callable[[str], Replicas]


@pytest.fixture(params=("memory", *SHARED))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same database again, as another process would, for a warehouse."""
    if request.param == "memory":
        first = MemoryReplicas(SCOPE)
        return lambda scope: MemoryReplicas(scope, first)
    url = f"sqlite:///{tmp_path}/replicas.db"
    if request.param == "postgres":
        url = request.getfixturevalue("server").uri(request.getfixturevalue("database"))
    return lambda scope: SqlReplicas(Transactions(engine_at(url)), scope)


def a_replica(name: str = "r", scope: str = SCOPE, topic: TopicName = ORDERS, **more: object) -> ReplicaDefinition:
    given = {"target": "/backup", "target_scope": "file:///backup", "throttle_bytes": None, "paused": False}
    return ReplicaDefinition(name, scope, topic.stream, topic.topic, **given | {"created_ms": 1_700_000_000_000} | more)


def noted(topic: TopicName = ORDERS, replica: str = "r", **more: object) -> TopicProgress:
    return TopicProgress(replica, topic, ReplicaStanding.REPLICATING, 5, "host-1", **more)


def test_at_first_there_are_none_and_nothing_is_made_by_reading(opened: Open) -> None:
    replicas = opened(SCOPE)
    assert (replicas.definitions(), replicas.into("file:///backup"), replicas.progress()) == ((), (), ())
    assert replicas.remove("r") is False
    assert replicas.replace(a_replica(), a_replica(paused=True)) is False


def test_a_definition_is_read_by_others_whole(opened: Open) -> None:
    orders = a_replica("orders", throttle_bytes=2**53, paused=True)
    stream = replace(a_replica("web"), stream="web", topic=None)
    assert all(opened(SCOPE).add(one) for one in (stream, orders))
    assert opened(SCOPE).definitions() == (orders, stream)
    assert opened(OTHER).definitions() == ()


def test_a_name_is_taken_once_in_each_warehouse(opened: Open) -> None:
    assert opened(SCOPE).add(a_replica())
    assert not opened(SCOPE).add(a_replica(topic=CLICKS))
    assert opened(OTHER).add(a_replica(scope=OTHER, topic=CLICKS))
    assert opened(SCOPE).definitions() == (a_replica(),)


def test_all_that_copy_into_a_warehouse_are_found(opened: Open) -> None:
    ours, theirs = a_replica(), a_replica(scope=OTHER, topic=CLICKS)
    opened(SCOPE).add(ours)
    opened(SCOPE).add(a_replica("elsewhere", target_scope="file:///third"))
    opened(OTHER).add(theirs)
    assert opened("file:///third").into("file:///backup") == (ours, theirs)


def test_a_definition_is_replaced_as_it_was_read(opened: Open) -> None:
    replicas, before = opened(SCOPE), a_replica()
    replicas.add(before)
    paused, fast = replace(before, paused=True), replace(before, throttle_bytes=7)
    assert replicas.replace(before, paused)
    assert not opened(SCOPE).replace(before, fast), "another one was faster"
    assert opened(SCOPE).definitions() == (paused,)
    assert replicas.replace(paused, replace(fast, paused=True))
    assert not replicas.replace(a_replica("gone"), a_replica("gone"))


def test_progress_is_replaced_topic_by_topic(opened: Open) -> None:
    replicas = opened(SCOPE)
    replicas.add(a_replica())
    failed = noted(
        version=3,
        behind_since_ms=9,
        failures=2,
        error="the target is full",
        retry_ms=2**53,
        copied_bytes=10,
        to_copy_bytes=2**40,
    )
    replicas.note([noted(CLICKS), failed])
    assert opened(SCOPE).progress() == (failed, noted(CLICKS))
    replicas.note([noted(version=4)])
    replicas.forget("r", [CLICKS])
    replicas.forget("r", [])
    assert opened(SCOPE).progress() == (noted(version=4),)
    assert opened(OTHER).progress() == ()


def test_nothing_is_noted_of_a_removed_definition(opened: Open) -> None:
    """A daemon may not have seen yet that it is gone."""
    replicas = opened(SCOPE)
    replicas.add(a_replica())
    replicas.note([noted()])
    assert opened(SCOPE).remove("r") is True
    replicas.note([noted(), noted(replica="other")])
    assert replicas.progress() == replicas.definitions() == ()
    replicas.add(a_replica())
    assert replicas.progress() == (), "a new one of the same name"


def test_leases_are_held_as_those_of_cleaners(opened: Open) -> None:
    name = a_replica().lease(CLICKS)
    assert name == "replica/r/web/clicks@file:///lake"
    assert opened(SCOPE).leases.take([Lease(name, "alpha", 1)], {}) == {name}
    assert opened(OTHER).leases.take([Lease(name, "beta", 1)], {}) == frozenset()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "remove", "replace", "note", "forget")), st.sampled_from("ab"), st.integers(1, 3)
    ),
    max_size=15,
)


@given(steps=STEPS)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_place_does_what_memory_does(opened: Open, steps: list[tuple[str, str, int]]) -> None:
    place = opened(SCOPE)
    for name in "ab":
        place.remove(name)
    both: tuple[Replicas, Replicas] = (MemoryReplicas(SCOPE), place)
    for step, name, number in steps:
        match step:
            case "add":
                assert len({one.add(a_replica(name, throttle_bytes=number)) for one in both}) == 1
            case "remove":
                assert len({one.remove(name) for one in both}) == 1
            case "replace":
                before, after = a_replica(name, throttle_bytes=number), a_replica(name, throttle_bytes=number + 1)
                assert len({one.replace(before, after) for one in both}) == 1
            case "note":
                for one in both:
                    one.note([noted(ORDERS, name, version=number), noted(CLICKS, name)])
            case _:
                for one in both:
                    one.forget(name, [ORDERS])
        assert both[0].definitions() == both[1].definitions()
        assert both[0].progress() == both[1].progress()


def test_readers_need_no_right_to_create_tables(server: Postgres, database: str) -> None:
    owner = SqlReplicas(Transactions(engine_at(server.uri(database))), SCOPE)
    with create_engine(server.uri(database)).begin() as admin:
        role = f"reader_{database}"
        admin.execute(text(f"CREATE ROLE {role} LOGIN PASSWORD 'x'"))
        admin.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
    reader = SqlReplicas(Transactions(engine_at(f"postgresql://{role}:x@127.0.0.1:{server.port}/{database}")), SCOPE)
    assert reader.definitions() == reader.progress() == ()
    owner.add(a_replica())
    with create_engine(server.uri(database)).begin() as admin:
        admin.execute(text(f"GRANT SELECT ON lithify_replicas, lithify_replica_topics TO {role}"))
    assert reader.definitions() == (a_replica(),)
    with create_engine(server.uri(database)).begin() as admin:
        admin.execute(text(f"DROP OWNED BY {role}"))
        admin.execute(text(f"DROP ROLE {role}"))


def test_without_a_database_that_is_shared_there_are_none() -> None:
    with pytest.raises(RefusedError, match="replicas need an SQL database"):
        open_replicas(None, None, WarehouseScope.of(SCOPE))


def test_names() -> None:
    assert checked_replica("orders-to-backup") == "orders-to-backup"
    for wrong in ("", "a/b", "a b", "x" * 250, "ü"):
        with pytest.raises(InvalidNameError, match="is not a replica"):
            checked_replica(wrong)
    assert default_name("default", "orders", "/srv/my backup/") == "orders-to-my-backup"
    assert default_name("web", None, "prod") == "web-to-prod"
    assert checked_replica(default_name("mapr.%2Fapps%2Fs", "a%2Fb", "x" * 300)).startswith("a-2Fb-to-x")


def test_what_a_definition_covers() -> None:
    one, whole = a_replica(topic=CLICKS), replace(a_replica(topic=CLICKS), topic=None)
    assert (one.what, whole.what) == ("web/clicks", "web")
    assert one.covers(CLICKS) and whole.covers(CLICKS) and whole.covers(TopicName("web", "later"))
    assert not one.covers(ORDERS) and not whole.covers(TopicName("default", "clicks"))
    assert one.overlaps(whole) and whole.overlaps(one) and one.overlaps(one)
    assert not one.overlaps(a_replica()) and not one.overlaps(replace(one, topic="later"))


def test_a_copy_continues_while_only_the_rate_is_another() -> None:
    one = a_replica()
    assert one.is_as(replace(one, throttle_bytes=5))
    for other in (None, replace(one, paused=True), replace(one, created_ms=1), replace(one, target="/elsewhere")):
        assert not one.is_as(other)
