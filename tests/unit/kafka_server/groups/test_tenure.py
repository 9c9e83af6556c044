"""Which gateway may commit for a group: one at a time, and not where members read with Lithify."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import lithify
from lithify.coordination.groups.member import LEASE_MS as MEMBER_LEASE_MS
from lithify.coordination.groups.member import Member
from lithify.coordination.leases.groups_sql import SqlGroups
from lithify.coordination.leases.lease_transactions import shared_database
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.committed import Commit, Committed
from lithify.kafka_server.groups.gateways import LEASE_MS, Gateways
from lithify.kafka_server.groups.offsets import Offsets
from lithify.kafka_server.groups.ranking import Gateway
from lithify.kafka_server.groups.tenure import Others, Tenure
from lithify.kafka_server.logs.served_topics import ServedTopics
from lithify.model.cursor import UNTOLD
from lithify.model.groups.positions import GroupTopic
from lithify.ports.groups import Groups
from lithify.rules.reading.continuation import Continuation, Continues, MissedDeletes, Untold, continuation
from lithify.testing import memory_lake
from lithify.testing.fake_clock import FakeClock
from lithify.testing.memory_groups import MemoryGroups
from support.kafka.group_servers import FIRST, GROUP, ORDERS, SECOND, OneTopic, Server, wait


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite"])
def groups(request: pytest.FixtureRequest, tmp_path: Path) -> Groups:
    if request.param == "memory":
        return MemoryGroups("here")
    database = shared_database(f"sqlite:///{tmp_path}/leases.db", None)
    assert database is not None
    return SqlGroups(database, "here")


@pytest.fixture
def topics() -> OneTopic:
    return OneTopic()


@pytest.fixture
def servers(groups: Groups, topics: OneTopic, clock: FakeClock) -> list[Server]:
    tenures = [Tenure(groups, name, clock) for name in ("alpha", "beta")]
    return [Server(tenure, Offsets(groups, topics, tenure, clock)) for tenure in tenures]


def test_a_frozen_gateway_overwrites_nothing(servers: list[Server], clock: FakeClock) -> None:
    alpha, beta = servers
    assert alpha.tenure.acquire(GROUP)
    assert alpha.commit(10, 20) == [Code.NONE, Code.NONE]
    beta.tenure.beat()
    assert not beta.tenure.acquire(GROUP)
    wait(clock, beta.tenure)
    assert beta.tenure.acquire(GROUP)
    assert beta.commit(50, 60) == [Code.NONE, Code.NONE]
    assert not alpha.tenure.holds(GROUP)
    assert alpha.commit(11, 21) == [Code.NOT_COORDINATOR, Code.NOT_COORDINATOR]
    assert beta.committed() == [50, 60]


def test_a_gateway_that_was_frozen_in_a_commit_takes_no_leases(
    servers: list[Server], topics: OneTopic, clock: FakeClock
) -> None:
    alpha, beta = servers
    assert alpha.tenure.acquire(GROUP)
    assert not beta.tenure.acquire(GROUP)

    def meanwhile() -> None:
        topics.meanwhile = lambda: None
        wait(clock, beta.tenure)
        assert beta.tenure.acquire(GROUP)
        assert beta.commit(50) == [Code.NONE]
        beta.tenure.give_up(GROUP)
        alpha.tenure.beat()

    topics.meanwhile = meanwhile
    assert alpha.commit(11) == [Code.NOT_COORDINATOR]
    assert beta.committed() == [50]
    assert beta.tenure.acquire(GROUP)
    assert beta.commit(60) == [Code.NONE]


def test_a_gateway_that_lives_stays_the_coordinator(servers: list[Server], clock: FakeClock) -> None:
    alpha, beta = servers
    assert alpha.tenure.acquire(GROUP)
    wait(clock, alpha.tenure, beta.tenure, ms=3 * LEASE_MS)
    assert alpha.tenure.holds(GROUP)
    assert not beta.tenure.acquire(GROUP)
    assert beta.commit(5) == [Code.NOT_COORDINATOR]
    assert alpha.commit(6) == [Code.NONE]


def test_a_group_is_handed_over_at_once(servers: list[Server]) -> None:
    alpha, beta = servers
    assert alpha.tenure.acquire(GROUP)
    assert alpha.commit(10, 20) == [Code.NONE, Code.NONE]
    alpha.tenure.give_up(GROUP)
    assert beta.tenure.acquire(GROUP)
    assert beta.commit(11, 21) == [Code.NONE, Code.NONE]
    assert alpha.commit(1) == [Code.NOT_COORDINATOR]
    assert beta.committed() == [11, 21]


def test_members_of_the_lake_keep_clients_out_and_the_other_way_round(
    groups: Groups, servers: list[Server], clock: FakeClock
) -> None:
    alpha, _ = servers
    member = Member(groups, GroupTopic("here", GROUP, ORDERS), "reader", MEMBER_LEASE_MS, clock)
    member.join()
    assert member.take([1]) == [1]
    assert alpha.tenure.acquire(GROUP)
    assert alpha.tenure.others(GROUP) is Others.PERHAPS
    clock.advance(6_000)
    member.beat()
    alpha.tenure.look()
    assert alpha.tenure.others(GROUP) is Others.SOME
    assert alpha.commit(10, 20) == [Code.NONE, Code.UNKNOWN_MEMBER_ID]
    assert not alpha.offsets.hold(GROUP, [FIRST, SECOND])
    assert member.take([0]) == []
    member.leave()
    alpha.tenure.look()
    assert alpha.tenure.others(GROUP) is Others.NONE
    assert alpha.offsets.hold(GROUP, [FIRST, SECOND])


def test_leases_are_of_partitions_that_exist(groups: Groups, servers: list[Server]) -> None:
    """A client may assign any number."""
    alpha, _ = servers
    assert alpha.tenure.acquire(GROUP)
    assert alpha.offsets.hold(GROUP, [SECOND, *(("shop.orders", number) for number in range(2, 99)), ("lost", 0)])
    names = {lease.name for lease in groups.leases.leases("")}
    assert names == {f"{GROUP}/coordinator@here", f"{GROUP}/shop/orders/1@here"}


def test_partitions_that_are_freed_can_be_read_by_others(
    groups: Groups, servers: list[Server], clock: FakeClock
) -> None:
    alpha, _ = servers
    assert alpha.tenure.acquire(GROUP)
    assert alpha.commit(10) == [Code.NONE]
    alpha.tenure.give_up(GROUP)
    member = Member(groups, GroupTopic("here", GROUP, ORDERS), "reader", MEMBER_LEASE_MS, clock)
    member.join()
    assert member.take([0]) == [0]
    member.leave()


def test_offsets_say_from_which_state_of_the_log_they_are(
    servers: list[Server], topics: OneTopic, groups: Groups
) -> None:
    alpha, _ = servers
    assert alpha.tenure.acquire(GROUP)
    topics.made.append([lithify.Record(key=b"k", value=b"v", timestamp=1, partition=0) for _ in range(9)])
    topics.made.truncate(0, 5, below_compacted=True)
    commits = {FIRST: Commit(9, leader_epoch=0), SECOND: Commit(4, leader_epoch=-1), ("lost", 0): Commit(1)}
    codes = alpha.offsets.commit(GROUP, commits, refusal=Code.UNKNOWN_MEMBER_ID)
    assert codes == {FIRST: Code.NONE, SECOND: Code.NONE, ("lost", 0): Code.UNKNOWN_TOPIC_OR_PARTITION}
    assert [position.cursor.offset for position in groups.positions(GROUP)] == [9, 4]
    assert alpha.fetched(None) == {FIRST: Committed(5, 0), SECOND: Committed(4, 0)}  # from there all is new
    bad = {FIRST: Commit(5, leader_epoch=2), SECOND: Commit(-2), ("shop.orders", 2): Commit(0)}
    codes = alpha.offsets.commit(GROUP, bad, refusal=Code.UNKNOWN_MEMBER_ID)
    assert [*codes.values()] == [Code.INVALID_REQUEST, Code.INVALID_REQUEST, Code.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_member_that_starts_is_told_of_a_cut_that_another_gateway_knows(
    servers: list[Server], topics: OneTopic
) -> None:
    alpha, _ = servers
    assert alpha.tenure.acquire(GROUP)
    topics.made.append([lithify.Record(key=b"k", value=b"v", timestamp=1, partition=0) for _ in range(9)])
    assert alpha.commit(9) == [Code.NONE]
    topics.old = topics.state
    topics.made.truncate(0, 5)
    assert alpha.fetched(None) == {FIRST: Committed(9, 0)}
    assert alpha.fetched([FIRST]) == {FIRST: Committed(5, 0)}


def test_offsets_in_partitions_that_another_gateway_has_told_of(groups: Groups, clock: FakeClock) -> None:
    lake = memory_lake()
    orders = lake.create_topic("shop/orders", 1)
    tenure = Tenure(groups, "alpha", clock)
    offsets = Offsets(groups, ServedTopics(lake.warehouse), tenure, clock)
    assert tenure.acquire(GROUP)
    assert offsets.commit(GROUP, {FIRST: Commit(0)}, refusal=Code.UNKNOWN_MEMBER_ID) == {FIRST: Code.NONE}
    orders.alter(partitions=2)
    assert offsets.commit(GROUP, {SECOND: Commit(0)}, refusal=Code.UNKNOWN_MEMBER_ID) == {SECOND: Code.NONE}
    lake.create_topic("shop/new", 1)
    new = "shop.new", 0
    assert offsets.commit(GROUP, {new: Commit(0)}, refusal=Code.UNKNOWN_MEMBER_ID) == {new: Code.NONE}


def test_positions_say_that_deletes_were_missed(servers: list[Server], topics: OneTopic, groups: Groups) -> None:
    """By a client that goes on as if it had missed none; who continues there with Lithify is told (C49)."""
    alpha, _ = servers
    assert alpha.tenure.acquire(GROUP)
    topics.made.alter({"delete.retention.ms": "0"})
    put(topics, b"old", b"gone", b"kept")
    assert alpha.commit(2) == [Code.NONE]
    assert continuations(groups, topics) == [Continues()]
    put(topics, None, key=b"gone")
    put(topics, b"more")
    topics.made.compact()
    assert continuations(groups, topics) == [MissedDeletes(4)]
    for offset in (2, 5, 4):
        assert alpha.commit(offset) == [Code.NONE]
        assert alpha.committed() == [offset]
        assert continuations(groups, topics) == [Untold()]
    assert alpha.commit(0) == [Code.NONE]
    assert continuations(groups, topics) == [Continues()]


def test_what_is_stored_is_read_once_while_the_leases_are_held(
    servers: list[Server], groups: Groups, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    alpha, beta = servers
    reads, read = list[str](), groups.positions
    monkeypatch.setattr(groups, "positions", lambda *asked: reads.append("read") or read(*asked))
    assert alpha.tenure.acquire(GROUP)
    for offset in (10, 20):
        assert alpha.commit(offset, 5) == [Code.NONE, Code.NONE]
    assert len(reads) == 1
    assert not beta.tenure.acquire(GROUP)
    wait(clock, beta.tenure)
    assert beta.tenure.acquire(GROUP)
    assert beta.commit(30) == [Code.NONE]
    untold = [replace(p, cursor=replace(p.cursor, epoch=UNTOLD)) for p in read(GROUP)]
    assert not beta.tenure.hold(GROUP, [p.log for p in untold])
    assert not groups.commit(untold, "beta")
    beta.tenure.give_up(GROUP)
    alpha.tenure.beat()
    assert alpha.tenure.acquire(GROUP)
    assert alpha.commit(40, 6) == [Code.NONE, Code.NONE]
    assert [p.cursor.is_untold for p in read(GROUP)] == [True, True]
    assert len(reads) == 3


def put(topics: OneTopic, *values: bytes | None, key: bytes | None = None) -> None:
    topics.made.append([lithify.Record(key or value, value, 1, partition=0) for value in values])


def continuations(groups: Groups, topics: OneTopic) -> list[Continuation]:
    state = topics.state
    positions = groups.positions(GROUP)
    return [continuation(p.cursor, state, state.log(p.log.partition), compacted=p.compacted) for p in positions]


def test_offsets_of_a_topic_that_was_deleted_are_no_offsets_of_the_next(
    servers: list[Server], topics: OneTopic
) -> None:
    alpha, _ = servers
    assert alpha.tenure.acquire(GROUP)
    assert alpha.commit(10) == [Code.NONE]
    topics.lake.delete_topic("shop/orders")
    topics.lake.create_topic("shop/orders", 2)
    assert alpha.fetched({FIRST}) == {}


def test_one_check_of_the_catalog_serves_a_request(servers: list[Server], topics: OneTopic) -> None:
    alpha, _ = servers
    assert alpha.tenure.acquire(GROUP)
    assert alpha.commit(10, 20) == [Code.NONE, Code.NONE]
    topics.lake.delete_topic("shop/orders")
    topics.lake.create_topic("shop/orders", 2)
    assert (alpha.committed(), topics.begun) == ([], 1)
    unknown = {(f"lost.{number}", 0): Commit(1) for number in range(9)}
    codes = alpha.offsets.commit(GROUP, unknown, refusal=Code.UNKNOWN_MEMBER_ID)
    assert ({*codes.values()}, topics.begun) == ({Code.UNKNOWN_TOPIC_OR_PARTITION}, 2)


def test_offsets_of_a_state_that_was_lost_are_no_offsets(servers: list[Server], groups: Groups) -> None:
    alpha, _ = servers
    assert alpha.tenure.acquire(GROUP)
    assert alpha.commit(10, 20) == [Code.NONE, Code.NONE]
    first, second = groups.positions(GROUP)
    truncated = replace(second, cursor=replace(second.cursor, generation=1))  # as before the catalog was restored
    assert not groups.commit([first, truncated], "alpha")
    assert alpha.committed() == [10]


def test_members_wait_while_a_topic_cannot_be_read(servers: list[Server], topics: OneTopic) -> None:
    alpha, _ = servers
    assert alpha.tenure.acquire(GROUP)
    assert alpha.commit(10) == [Code.NONE]
    topics.error = lithify.LithifyError("the catalog is away")
    assert alpha.fetched(None) is Code.COORDINATOR_LOAD_IN_PROGRESS
    assert alpha.commit(11) == [Code.KAFKA_STORAGE_ERROR]


def test_offsets_are_deleted(servers: list[Server]) -> None:
    alpha, _ = servers
    assert alpha.tenure.acquire(GROUP)
    assert alpha.offsets.delete(GROUP, None) is Code.GROUP_ID_NOT_FOUND
    assert alpha.commit(10, 20) == [Code.NONE, Code.NONE]
    assert alpha.offsets.delete(GROUP, [SECOND]) is Code.NONE
    assert alpha.committed() == [10]
    assert alpha.offsets.delete(GROUP, None) is Code.NONE
    assert alpha.offsets.groups() == frozenset()


def test_gateways_see_who_is_there(clock: FakeClock) -> None:
    leases = MemoryCoordination()
    alpha, beta = (Gateways(Gateway(name, 9092), leases, "here/", name, clock) for name in ("alpha", "beta"))
    for gateways in (alpha, beta, alpha):
        gateways.look()
    assert alpha.live == beta.live == (Gateway("alpha", 9092), Gateway("beta", 9092))
    for _ in range(LEASE_MS // 1_000 + 1):
        clock.advance(1_000)
        alpha.look()
    assert alpha.live == (Gateway("alpha", 9092),)
    beta.look()  # it was frozen
    alpha.look()
    assert len(alpha.live) == 2
    beta.leave()
    alpha.look()
    assert len(alpha.live) == 1


def test_a_gateway_with_the_address_of_another_one_is_told(clock: FakeClock) -> None:
    """But not one that was started again, after it was killed."""
    leases, told, here = MemoryCoordination(), dict.fromkeys("kab", False), Gateway("here", 9092)
    killed, alpha, beta = (
        Gateways(here, leases, "here/", name, clock, told=partial(told.__setitem__, name)) for name in told
    )
    killed.look()
    for _ in range(LEASE_MS // 1_000):
        alpha.look()
        clock.advance(1_000)
    assert not any(told.values())
    for _ in range(LEASE_MS // 1_000):
        alpha.look()
        beta.look()
        clock.advance(1_000)
    assert told == {"k": False, "a": True, "b": True}
    beta.leave()
    alpha.look()
    assert not told["a"]
