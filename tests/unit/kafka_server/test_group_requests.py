"""What is answered to requests of groups in all versions, over a socket: to members, to others, and who may ask."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest

import lithify
from lithify.api.wiring import groups_of
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.offsets import Offsets
from lithify.kafka_server.groups.seat import Shared
from lithify.model.access.roles import Role
from lithify.testing import memory_lake
from support.kafka.served import Everyone, OpenLogins, ServedLake, serving_kafka
from support.kafka.wire import WireClient
from support.servers.tcp_proxy import wait_until

COMMIT, FETCH, FIND, JOIN, BEAT, LEAVE, SYNC, DESCRIBE, LIST, DELETE, FORGET = 8, 9, 10, 11, 12, 13, 14, 15, 16, 42, 47
CONSUMER_BEAT, CONSUMER_DESCRIBE = 68, 69
ORDERS, SECRET = "shop.orders", "vault.secret"
NAME = b"\x00\x0bshop.orders"
SUBSCRIPTION = b"\x00\x00" + b"\x00\x00\x00\x01" + NAME + b"\xff\xff\xff\xff"
SECRETLY = b"\x00\x00" + b"\x00\x00\x00\x01" + b"\x00\x0cvault.secret" + b"\xff\xff\xff\xff"
ASSIGNMENT = b"\x00\x00" + b"\x00\x00\x00\x01" + NAME + b"\x00\x00\x00\x01\x00\x00\x00\x00" + b"\xff\xff\xff\xff"


def lake_with_topics() -> lithify.Lake:
    lake = memory_lake()
    for name in ("shop/orders", "vault/secret"):
        lake.create_topic(name, 2).append([lithify.Record(b"k", b"v", partition=0)])
    return lake


@pytest.fixture(scope="module")
def served() -> Iterator[ServedLake]:
    lake = lake_with_topics()
    shared = Shared(groups_of(lake.warehouse, None), MemoryCoordination())
    roles = frozenset({Role.CONSUME, Role.LOOK})
    with serving_kafka(lake, OpenLogins(Everyone(hidden=frozenset({"vault"}), roles=roles)), groups=shared) as one:
        yield one


@pytest.fixture
def client(served: ServedLake) -> Iterator[WireClient]:
    with served.client() as one:
        yield one


def join(client: WireClient, version: int, group: str, member_id: str = "", **other: Any) -> dict[str, Any]:
    protocols = [{"name": "range", "metadata": SUBSCRIPTION}]
    asked = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}
    return client.ask(JOIN, version, group_id=group, member_id=member_id, **asked | {"protocols": protocols} | other)


def member(client: WireClient, version: int, group: str) -> str:
    """A stable group with one member; its id."""
    told = join(client, version, group)
    if told["error_code"] == Code.MEMBER_ID_REQUIRED:
        told = join(client, version, group, told["member_id"])
    assert (told["error_code"], told["generation_id"], told["leader"]) == (Code.NONE, 1, told["member_id"])
    assert [one["metadata"] for one in told["members"]] == [SUBSCRIPTION]
    given = [{"member_id": told["member_id"], "assignment": ASSIGNMENT}]
    synced = client.ask(
        SYNC, min(version, 5), group_id=group, generation_id=1, member_id=told["member_id"], assignments=given
    )
    assert (synced["error_code"], synced["assignment"]) == (Code.NONE, ASSIGNMENT)
    return str(told["member_id"])


def commit(client: WireClient, version: int, group: str, *topics: str, offset: int = 1, **member: Any) -> list[int]:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": "note"}
    asked = [{"name": name, "partitions": [partition]} for name in topics]
    told = client.ask(COMMIT, version, group_id=group, topics=asked, **member)
    return [topic["partitions"][0]["error_code"] for topic in told["topics"]]


@pytest.mark.parametrize("version", [0, 3, 4, 9])
def test_a_member_of_each_kind_of_version(client: WireClient, version: int) -> None:
    group = f"version-{version}"
    member_id = member(client, version, group)
    asked = {"group_id": group, "member_id": member_id, "generation_id": 1}
    assert client.ask(BEAT, min(version, 4), **asked)["error_code"] == Code.NONE
    assert client.ask(BEAT, min(version, 4), **asked | {"generation_id": 2})["error_code"] == Code.ILLEGAL_GENERATION
    known = {"member_id": member_id, "generation_id_or_member_epoch": 1}
    assert commit(client, max(version, 2), group, ORDERS, **known) == [Code.NONE]
    assert commit(client, max(version, 2), group, ORDERS) == [Code.UNKNOWN_MEMBER_ID]
    leaving = {"member_id": member_id} if version < 3 else {"members": [{"member_id": member_id}]}
    assert client.ask(LEAVE, min(version, 5), group_id=group, **leaving)["error_code"] == Code.NONE
    told = client.ask(LEAVE, min(version, 5), group_id=group, **leaving)
    assert (told["error_code"] if version < 3 else told["members"][0]["error_code"]) == Code.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(1, 10))
def test_offsets_of_each_version(client: WireClient, version: int) -> None:
    assert commit(client, 2, "simple", ORDERS, SECRET, "none", offset=7) == [
        Code.UNKNOWN_TOPIC_OR_PARTITION,
        Code.NONE,
        Code.TOPIC_AUTHORIZATION_FAILED,
    ]
    topics = [{"name": name, "partition_indexes": [0, 1]} for name in (ORDERS, SECRET)]
    asked = {"group_id": "simple", "topics": topics}
    told = client.ask(FETCH, version, **asked if version < 8 else {"groups": [asked]})
    group = told if version < 8 else told["groups"][0]
    found = {topic["name"]: topic["partitions"] for topic in group["topics"]}
    assert [(one["committed_offset"], one["error_code"]) for one in found[ORDERS]] == [(7, 0), (-1, 0)]
    assert [one["error_code"] for one in found[SECRET]] == [Code.TOPIC_AUTHORIZATION_FAILED] * 2
    if version >= 2:
        asked["topics"] = None  # type: ignore[assignment]
        told = client.ask(FETCH, version, **asked if version < 8 else {"groups": [asked]})
        assert [one["name"] for one in (told if version < 8 else told["groups"][0])["topics"]] == [ORDERS]


def test_offsets_of_topics_by_id(client: WireClient, served: ServedLake) -> None:
    (told,) = client.ask(3, 12, topics=[{"name": ORDERS, "topic_id": bytes(16)}])["topics"]
    known, unknown = told["topic_id"], bytes([7] * 16)
    partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    asked = [{"topic_id": topic_id, "partitions": [partition]} for topic_id in (known, unknown, bytes(16))]
    topics = client.ask(COMMIT, 10, group_id="by-id", topics=asked)["topics"]
    assert {topic["topic_id"]: topic["partitions"][0]["error_code"] for topic in topics} == {
        known: Code.NONE,
        unknown: Code.UNKNOWN_TOPIC_ID,
        bytes(16): Code.UNKNOWN_TOPIC_ID,
    }
    wanted = [{"topic_id": topic_id, "partition_indexes": [0, 1]} for topic_id in (known, unknown)]
    (group,) = client.ask(FETCH, 10, groups=[{"group_id": "by-id", "topics": wanted}])["groups"]
    found = {topic["topic_id"]: topic["partitions"] for topic in group["topics"]}
    assert [one["committed_offset"] for one in found[known]] == [5, -1]
    assert [one["error_code"] for one in found[unknown]] == [Code.UNKNOWN_TOPIC_ID] * 2
    (group,) = client.ask(FETCH, 10, groups=[{"group_id": "by-id", "topics": None}])["groups"]
    assert [topic["topic_id"] for topic in group["topics"]] == [known]


def test_an_id_of_a_topic_that_was_recreated_is_not_the_next_one() -> None:
    lake = lake_with_topics()
    shared = Shared(groups_of(lake.warehouse, None), MemoryCoordination())
    with serving_kafka(lake, OpenLogins(Everyone(roles=None)), groups=shared) as one, one.client() as client:
        (told,) = client.ask(3, 12, topics=[{"name": ORDERS, "topic_id": bytes(16)}])["topics"]
        lake.delete_topic("shop/orders")
        lake.create_topic("shop/orders", 2)
        partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        asked = [{"topic_id": told["topic_id"], "partitions": [partition]}]
        wait_until(lambda: _code_of(client, asked) == Code.UNKNOWN_TOPIC_ID, "the topic is not known")
        (group,) = client.ask(FETCH, 9, groups=[{"group_id": "old", "topics": None}])["groups"]
        assert group["topics"] == []


def _code_of(client: WireClient, topics: list[dict[str, Any]]) -> int:
    told = client.ask(COMMIT, 10, group_id="old", topics=topics)["topics"]
    return int(told[0]["partitions"][0]["error_code"])


@pytest.mark.parametrize(
    ("other", "error"),
    [
        ({"session_timeout_ms": 5_999}, Code.INVALID_SESSION_TIMEOUT),
        ({"protocols": [{"name": "range", "metadata": b"x" * 131_073}]}, Code.INVALID_REQUEST),
        ({"protocols": [{"name": "range", "metadata": SECRETLY}]}, Code.GROUP_AUTHORIZATION_FAILED),
        ({"protocols": []}, Code.INCONSISTENT_GROUP_PROTOCOL),
        ({"group": "a b"}, Code.INVALID_GROUP_ID),
        ({"member_id": "nobody"}, Code.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_cannot_join_is_told_why(client: WireClient, other: dict[str, Any], error: Code) -> None:
    assert join(client, 9, **{"group": "refused", **other})["error_code"] == error


def test_groups_are_described_listed_and_deleted(client: WireClient) -> None:
    member_id = member(client, 9, "seen")
    (group,) = client.ask(DESCRIBE, 6, groups=["seen"])["groups"]
    assert (group["group_state"], group["protocol_data"]) == ("Stable", "range")
    assert [(one["member_id"], one["member_assignment"]) for one in group["members"]] == [(member_id, ASSIGNMENT)]
    (lost,) = client.ask(DESCRIBE, 6, groups=["lost"])["groups"]
    assert (lost["group_state"], lost["error_code"]) == ("Dead", Code.GROUP_ID_NOT_FOUND)
    assert client.ask(DESCRIBE, 5, groups=["lost"])["groups"][0]["error_code"] == Code.NONE
    stable = client.ask(LIST, 5, states_filter=["stable"], types_filter=["Classic"])["groups"]
    assert "seen" in {one["group_id"] for one in stable}
    assert client.ask(LIST, 5, types_filter=["consumer"])["groups"] == []
    (refused,) = client.ask(DELETE, 2, groups_names=["seen"])["results"]
    assert refused["error_code"] == Code.NON_EMPTY_GROUP


def test_groups_of_all_streams_need_a_role_for_all_streams() -> None:
    lake, denied = lake_with_topics(), Code.GROUP_AUTHORIZATION_FAILED
    shared = Shared(groups_of(lake.warehouse, None), MemoryCoordination())
    everyone = OpenLogins(Everyone(hidden=frozenset({"*"}), roles=None))
    with serving_kafka(lake, everyone, groups=shared) as one, one.client() as client:
        assert client.ask(LIST, 5)["error_code"] == denied
        assert client.ask(DESCRIBE, 6, groups=["g"])["groups"][0]["error_code"] == denied
        assert client.ask(CONSUMER_DESCRIBE, 1, group_ids=["g"])["groups"][0]["error_code"] == denied
        assert client.ask(DELETE, 2, groups_names=["g"])["results"][0]["error_code"] == denied


def test_offsets_that_members_read_are_not_deleted(client: WireClient) -> None:
    member(client, 9, "kept")
    topics = [{"name": name, "partitions": [{"partition_index": 0}]} for name in (ORDERS, SECRET, "none")]
    told = client.ask(FORGET, 0, group_id="kept", topics=topics)
    assert {topic["name"]: topic["partitions"][0]["error_code"] for topic in told["topics"]} == {
        ORDERS: Code.GROUP_SUBSCRIBED_TO_TOPIC,
        SECRET: Code.TOPIC_AUTHORIZATION_FAILED,
        "none": Code.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert client.ask(FORGET, 0, group_id="nobody", topics=topics)["error_code"] == Code.GROUP_ID_NOT_FOUND


def test_an_offset_is_not_deleted_by_the_name_of_a_view_that_there_is_not(client: WireClient) -> None:
    assert commit(client, 9, "viewless", ORDERS) == [Code.NONE]
    view = {"name": f"{ORDERS}.compacted", "partitions": [{"partition_index": 0}]}
    told = client.ask(FORGET, 0, group_id="viewless", topics=[view])
    assert told["topics"][0]["partitions"][0]["error_code"] == Code.UNKNOWN_TOPIC_OR_PARTITION
    asked = {"group_id": "viewless", "topics": [{"name": ORDERS, "partition_indexes": [0]}]}
    (group,) = client.ask(FETCH, 8, groups=[asked])["groups"]
    assert group["topics"][0]["partitions"][0]["committed_offset"] == 1


def test_a_member_of_the_newer_protocol(client: WireClient) -> None:
    asked = {"group_id": "newer", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 10_000}
    told = client.ask(CONSUMER_BEAT, 1, **asked, subscribed_topic_names=[ORDERS], topic_partitions=[])
    assert (told["error_code"], told["member_epoch"]) == (Code.NONE, 1)
    assert [one["partitions"] for one in told["assignment"]["topic_partitions"]] == [[0, 1]]
    (group,) = client.ask(CONSUMER_DESCRIBE, 1, group_ids=["newer"])["groups"]
    assert (group["group_state"], group["members"][0]["subscribed_topic_names"]) == ("Stable", [ORDERS])
    assert group["members"][0]["assignment"]["topic_partitions"][0]["topic_name"] == ORDERS
    assert join(client, 9, "newer")["error_code"] == Code.INCONSISTENT_GROUP_PROTOCOL
    assert commit(client, 9, "newer", ORDERS, member_id="m", generation_id_or_member_epoch=1) == [Code.NONE]
    assert commit(client, 9, "newer", ORDERS, member_id="m", generation_id_or_member_epoch=0) == [
        Code.STALE_MEMBER_EPOCH
    ]
    bad = client.ask(CONSUMER_BEAT, 1, **asked | {"member_id": "n"}, subscribed_topic_regex="(")
    assert bad["error_code"] == Code.GROUP_AUTHORIZATION_FAILED  # a pattern needs the role for all there are
    hidden = client.ask(CONSUMER_BEAT, 1, **asked | {"member_id": "n"}, subscribed_topic_names=[SECRET])
    assert hidden["error_code"] == Code.GROUP_AUTHORIZATION_FAILED
    assert client.ask(CONSUMER_BEAT, 1, **asked | {"member_epoch": -1})["error_code"] == Code.NONE
    (gone,) = client.ask(CONSUMER_DESCRIBE, 1, group_ids=["seen"])["groups"]
    assert gone["error_code"] == Code.GROUP_ID_NOT_FOUND


def test_a_bad_pattern_is_refused() -> None:
    lake = lake_with_topics()
    shared = Shared(groups_of(lake.warehouse, None), MemoryCoordination())
    with serving_kafka(lake, OpenLogins(Everyone(roles=None)), groups=shared) as one, one.client() as client:
        asked = {"group_id": "g", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 10_000}
        told = client.ask(CONSUMER_BEAT, 1, **asked, subscribed_topic_regex="(")
        assert told["error_code"] == Code.INVALID_REGULAR_EXPRESSION
        told = client.ask(CONSUMER_BEAT, 1, **asked, subscribed_topic_regex="shop.*")
        assert [len(one["partitions"]) for one in told["assignment"]["topic_partitions"]] == [2]


def test_this_gateway_coordinates_and_another_one_does_not(client: WireClient, served: ServedLake) -> None:
    (found,) = client.ask(FIND, 4, key_type=0, coordinator_keys=["any"])["coordinators"]
    assert (found["host"], found["port"]) == served.address


def test_without_a_database_requests_of_groups_say_so() -> None:
    with serving_kafka(lake_with_topics()) as alone, alone.client() as client:
        away = Code.COORDINATOR_NOT_AVAILABLE
        assert join(client, 9, "g")["error_code"] == away
        assert commit(client, 9, "g", ORDERS) == [away]
        for key, version, body in (
            (SYNC, 5, {"group_id": "g"}),
            (BEAT, 4, {"group_id": "g"}),
            (LEAVE, 5, {"group_id": "g"}),
            (FORGET, 0, {"group_id": "g"}),
            (LIST, 5, {}),
            (CONSUMER_BEAT, 1, {"group_id": "g"}),
        ):
            assert client.ask(key, version, **body)["error_code"] == away
        assert client.ask(FETCH, 9, groups=[{"group_id": "g"}])["groups"][0]["error_code"] == away
        told = client.ask(FETCH, 1, group_id="g", topics=[{"name": ORDERS, "partition_indexes": [0]}])
        assert told["topics"][0]["partitions"][0]["error_code"] == away


@pytest.mark.parametrize("names", [[str(n) for n in range(101)], ["x" * 2000 + str(n) for n in range(70)]])
def test_a_member_names_few_protocols(client, names):
    protocols = [{"name": name, "metadata": b""} for name in names]
    assert join(client, 9, "many", protocol_type="connect", protocols=protocols)["error_code"] == Code.INVALID_REQUEST


def test_a_commit_whose_client_has_left_does_not_replace_a_later_one(served, client, monkeypatch):
    begun, go_on, done = Event(), Event(), Event()
    commit = Offsets.commit

    def commits(offsets: Offsets, *given: Any, **more: Any) -> Any:
        if begun.is_set():
            return commit(offsets, *given, **more)
        begun.set()
        go_on.wait(10)
        try:
            return commit(offsets, *given, **more)
        finally:
            done.set()

    def asked(offset: int) -> dict[str, Any]:
        partitions = [{"partition_index": 0, "committed_offset": offset}]
        return {"group_id": "late", "topics": [{"name": ORDERS, "partitions": partitions}]}

    monkeypatch.setattr(Offsets, "commit", commits)
    with served.client() as leaving:
        leaving.send(COMMIT, 5, generation_id_or_member_epoch=-1, **asked(0))
        assert begun.wait(10)
    client.send(COMMIT, 5, generation_id_or_member_epoch=-1, **asked(1))
    time.sleep(0.5)
    go_on.set()
    assert client.receive(COMMIT, 5)["topics"][0]["partitions"][0]["error_code"] == Code.NONE
    assert done.wait(10)
    told = client.ask(FETCH, 5, group_id="late", topics=[{"name": ORDERS, "partition_indexes": [0]}])
    assert told["topics"][0]["partitions"][0]["committed_offset"] == 1


@dataclass(frozen=True)
class Nobody:
    """Who may do nothing."""

    name: str = "nobody"
    token_id: str | None = "t2"

    def may(self, role: Role, stream: str) -> bool:
        return False

    def streams(self, role: Role) -> frozenset[str]:
        return frozenset()


def test_who_may_not_read_what_a_group_reads_cannot_act_in_it():
    lake = lake_with_topics()
    shared = Shared(groups_of(lake.warehouse, None), MemoryCoordination())
    logins = OpenLogins(None, {"alice": Everyone(), "none": Nobody()})
    with serving_kafka(lake, logins, groups=shared) as served, served.client() as alice, served.client() as nobody:
        for client, token in ((alice, b"alice"), (nobody, b"none")):
            client.ask(17, 1, mechanism="PLAIN")
            client.ask(36, 2, auth_bytes=b"\0any\0" + token)
        group = {"group_id": "g"}
        joined = join(alice, 9, "g", group_instance_id="named")
        me = {"generation_id": 1, "member_id": joined["member_id"], "group_instance_id": "named"}
        given = [{"member_id": joined["member_id"], "assignment": ASSIGNMENT}]
        assert alice.ask(SYNC, 5, assignments=given, **group, **me)["error_code"] == Code.NONE
        named = [{"member_id": "", "group_instance_id": "named"}]
        assert nobody.ask(LEAVE, 5, members=named, **group)["error_code"] == Code.GROUP_AUTHORIZATION_FAILED
        nothing = [{"name": "range", "metadata": b"\0\0" + b"\0\0\0\0" + b"\xff\xff\xff\xff"}]
        for more in ({}, {"group_instance_id": "named"}, {"protocol_type": "other"}):
            told = join(nobody, 9, "g", protocols=nothing, **more)
            assert told["error_code"] == Code.GROUP_AUTHORIZATION_FAILED
        assert alice.ask(BEAT, 4, **group, **me)["error_code"] == Code.NONE
        asked = {"topics": [{"name": ORDERS, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]}
        of_member = {"generation_id_or_member_epoch": 1, "member_id": me["member_id"], "group_instance_id": "named"}
        alice.ask(COMMIT, 9, **group, **asked, **of_member)
        assert alice.ask(LEAVE, 5, members=named, **group)["error_code"] == Code.NONE
        beat = {"member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 9000, "topic_partitions": []}
        told = nobody.ask(CONSUMER_BEAT, 1, subscribed_topic_names=["none"], **group, **beat)
        assert told["error_code"] == Code.GROUP_AUTHORIZATION_FAILED


def test_a_leader_takes_no_leases_of_partitions_that_do_not_exist():
    lake = lake_with_topics()
    groups = groups_of(lake.warehouse, None)
    with serving_kafka(lake, groups=Shared(groups, MemoryCoordination())) as served, served.client() as client:
        member_id = join(client, 9, "far")["member_id"]
        told = join(client, 9, "far", member_id)
        numbers = b"".join(number.to_bytes(4, "big", signed=True) for number in (0, 1, 2, 10**6, -1))
        assigned = b"\0\0" + b"\0\0\0\1" + NAME + b"\0\0\0\5" + numbers + b"\xff\xff\xff\xff"
        given = [{"member_id": member_id, "assignment": assigned}]
        asked = {"group_id": "far", "generation_id": told["generation_id"], "member_id": member_id}
        assert client.ask(SYNC, 5, assignments=given, **asked)["error_code"] == Code.NONE
        held = [lease.name for lease in groups.leases.leases("far/")]
    assert len(held) == 3  # of the two partitions, and of the group itself
