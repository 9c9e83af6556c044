"""What requests of groups may take: memory by token, names, groups in one request, and work for a pattern."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from threading import current_thread
from typing import Any

import pytest

from lithify.api.wiring import groups_of
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups import shares
from lithify.kafka_server.groups.consumers import matching
from lithify.kafka_server.groups.seat import Shared
from lithify.kafka_server.requests.groups import looks, offsets
from lithify.model.access.roles import Role
from lithify.ports.groups import Groups
from lithify.testing import memory_lake
from support.kafka.served import Everyone, OpenLogins, serving_kafka
from support.kafka.wire import WireClient

COMMIT, FETCH, JOIN, LEAVE, SYNC, DESCRIBE, DELETE, BEAT, CONSUMER_DESCRIBE = 8, 9, 11, 13, 14, 15, 42, 68, 69
ORDERS = "shop.orders"
ROLES = frozenset({Role.CONSUME, Role.LOOK})


class Gateway:
    """A gateway whose clients log in with tokens of their own, or need none."""

    def __init__(self, stack: ExitStack) -> None:
        lake = memory_lake()
        lake.create_topic("shop/orders", 2)
        self.groups: Groups = groups_of(lake.warehouse, None)
        self.told = list[str]()
        callers = {name: Everyone(name, roles=ROLES, token_id=name) for name in ("alice", "bob")}
        shared = Shared(self.groups, MemoryCoordination())
        self.logins = OpenLogins(None, callers)
        self._stack = stack
        self.served = stack.enter_context(serving_kafka(lake, self.logins, groups=shared, tell=self.told.append))

    def client(self, token: str) -> WireClient:
        client = self._stack.enter_context(self.served.client())
        client.ask(17, 1, mechanism="PLAIN")
        assert client.ask(36, 2, auth_bytes=b"\0any\0" + token.encode())["error_code"] == Code.NONE
        return client


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with ExitStack() as stack:
        yield Gateway(stack)


def join(client: WireClient, group: str, *, metadata: bytes = b"", **other: Any) -> dict[str, Any]:
    protocols = [{"name": "any", "metadata": metadata}]
    asked = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "connect", "member_id": ""}
    return client.ask(JOIN, 9, group_id=group, **asked | {"protocols": protocols} | other)


def beat(client: WireClient, group: str, **other: Any) -> dict[str, Any]:
    asked = {"member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 10_000, "topic_partitions": []}
    return client.ask(BEAT, 1, group_id=group, **asked | {"subscribed_topic_names": [ORDERS]} | other)


def leave(client: WireClient, group: str, member_id: str) -> Any:
    return client.ask(LEAVE, 5, group_id=group, members=[{"member_id": member_id}])["error_code"]


def test_one_token_does_not_shut_out_the_groups_of_others(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MOST_GROUPS", 4)
    alice, bob = gateway.client("alice"), gateway.client("bob")
    assert [join(alice, f"a{n}")["error_code"] for n in range(3)] == [Code.MEMBER_ID_REQUIRED] * 3
    assert join(alice, "a3")["error_code"] == Code.GROUP_MAX_SIZE_REACHED
    assert beat(alice, "a4")["error_code"] == Code.GROUP_MAX_SIZE_REACHED
    assert (
        gateway.told
        == ["a member of a group of Kafka's clients was refused: there are as many groups as this gateway takes"] * 2
    )
    assert join(bob, "b")["error_code"] == Code.MEMBER_ID_REQUIRED
    assert join(bob, "a0")["error_code"] == Code.MEMBER_ID_REQUIRED  # which begins none
    assert join(bob, "b1")["error_code"] == Code.GROUP_MAX_SIZE_REACHED


def test_one_token_does_not_take_all_memory(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MOST_BYTES", 400_000)
    alice, bob = gateway.client("alice"), gateway.client("bob")
    large = b"x" * 100_000

    def come(group: str) -> dict[str, Any]:
        return join(alice, group, metadata=large, member_id=join(alice, group)["member_id"])

    joined = [come(f"a{n}") for n in range(3)]
    assert [one["error_code"] for one in joined] == [Code.NONE, Code.NONE, Code.GROUP_MAX_SIZE_REACHED]
    given = [{"member_id": joined[0]["member_id"], "assignment": large}]
    me = {"group_id": "a0", "generation_id": 1, "member_id": joined[0]["member_id"]}
    assert alice.ask(SYNC, 5, assignments=given, **me)["error_code"] == Code.GROUP_MAX_SIZE_REACHED
    topics = [f"{ORDERS}.{'x' * 200}.{n}" for n in range(500)]
    assert beat(alice, "a9", subscribed_topic_names=topics)["error_code"] == Code.GROUP_MAX_SIZE_REACHED
    assert len(gateway.told) == 3
    assert join(bob, "b", metadata=large)["error_code"] == Code.MEMBER_ID_REQUIRED
    assert leave(alice, "a1", joined[1]["member_id"]) == Code.NONE
    assert alice.ask(SYNC, 5, assignments=given, **me)["error_code"] == Code.NONE


def test_memory_is_free_again_once_members_have_left(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "MOST_BYTES", 400_000)
    alice = gateway.client("alice")
    for _ in range(9):
        told = join(alice, "a", metadata=b"x" * 100_000, member_id=join(alice, "a")["member_id"])
        assert told["error_code"] == Code.NONE
        assert leave(alice, "a", told["member_id"]) == Code.NONE
    for n in range(9):
        assert beat(alice, "modern", member_id=f"m{n}", rack_id="r" * 200)["error_code"] == Code.NONE
        assert beat(alice, "modern", member_id=f"m{n}", member_epoch=-1)["error_code"] == Code.NONE


@pytest.mark.parametrize("name", ["group_instance_id", "protocol_type"])
def test_names_are_as_long_as_those_of_kafka(gateway: Gateway, name: str) -> None:
    alice = gateway.client("alice")
    assert join(alice, "g", **{name: "é" * 249})["error_code"] in (Code.NONE, Code.MEMBER_ID_REQUIRED)
    assert join(alice, "g2", **{name: "x" * 250})["error_code"] == Code.INVALID_REQUEST


def test_client_ids_are_as_long_as_those_of_kafka(gateway: Gateway) -> None:
    alice = gateway.client("alice")
    alice.client_id = "x" * 32_767
    assert join(alice, "g")["error_code"] == beat(alice, "h")["error_code"] == Code.INVALID_REQUEST


@pytest.mark.parametrize(
    "other",
    [
        {"member_id": "m" * 250},
        {"instance_id": "i" * 250},
        {"rack_id": "r" * 250},
        {"subscribed_topic_names": ["t" * 249 + str(n) for n in range(1_000)]},
        {"subscribed_topic_regex": "x" * 4_097},
    ],
)
def test_members_of_the_newer_protocol_are_bounded_too(gateway: Gateway, other: dict[str, Any]) -> None:
    assert beat(gateway.client("alice"), "g", **other)["error_code"] == Code.INVALID_REQUEST


def test_many_groups_in_one_request_are_few_queries_and_begin_no_groups(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.logins.callers["alice"] = Everyone(roles=None, token_id="alice")
    alice, reads = gateway.client("alice"), count()
    for name in ("positions", "positions_of"):
        monkeypatch.setattr(gateway.groups, name, _counted(getattr(gateway.groups, name), reads))
    topics = [{"name": ORDERS, "partitions": [{"partition_index": 0, "committed_offset": 0}]}]
    assert alice.ask(COMMIT, 9, group_id="g7", topics=topics)["topics"][0]["partitions"][0]["error_code"] == Code.NONE
    names, before = [f"g{n}" for n in range(1_000)], next(reads)
    dead = [one["group_state"] for one in alice.ask(DESCRIBE, 6, groups=names)["groups"]]
    asked = [{"group_id": name, "topics": None} for name in names]
    found = [one["topics"] for one in alice.ask(FETCH, 9, groups=asked)["groups"]]
    codes = [one["error_code"] for one in alice.ask(DELETE, 2, groups_names=names)["results"]]
    assert [n for n in range(1_000) if dead[n] == "Empty"] == [n for n in range(1_000) if found[n]] == [7]
    assert [n for n in range(1_000) if codes[n] != Code.GROUP_ID_NOT_FOUND] == [7]
    assert codes[7] == Code.NONE
    assert next(reads) - before < 40
    assert {lease.name for lease in gateway.groups.leases.leases("")} <= {
        f"g7/{rest}@{gateway.groups.scope}" for rest in ("coordinator", "shop/orders/0")
    }


def _counted(reads: Any, counter: Iterator[int]) -> Any:
    def read(*given: Any, **named: Any) -> Any:
        next(counter)
        return reads(*given, **named)

    return read


def test_what_many_groups_are_asked_for_is_not_read_on_the_loop(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = set[str]()

    def noted(form: Any) -> Any:
        def work(*given: Any) -> Any:
            threads.add(current_thread().name)
            return form(*given)

        return work

    for module, name in ((offsets, "_wanted"), (looks, "_described"), (looks, "_consumers")):
        monkeypatch.setattr(module, name, noted(getattr(module, name)))
    alice, names = gateway.client("alice"), ["a", "b", "a"]
    assert len(alice.ask(FETCH, 9, groups=[{"group_id": name, "topics": None} for name in names])["groups"]) == 2
    assert len(alice.ask(DESCRIBE, 6, groups=names)["groups"]) == 2
    assert len(alice.ask(CONSUMER_DESCRIBE, 0, group_ids=names)["groups"]) == 2
    assert "kafka" not in threads and threads


def test_more_members_than_a_group_has_do_not_leave(gateway: Gateway) -> None:
    alice = gateway.client("alice")
    for many, code in ((2_000, Code.NONE), (2_001, Code.INVALID_REQUEST)):
        members = [{"member_id": f"m{n}"} for n in range(many)]
        assert alice.ask(LEAVE, 5, group_id="g", members=members)["error_code"] == code


def test_offsets_in_topics_that_are_denied_begin_no_group(gateway: Gateway) -> None:
    gateway.logins.callers["bob"] = Everyone("bob", frozenset({"shop"}), token_id="bob")
    bob = gateway.client("bob")
    topics = [{"name": ORDERS, "partitions": [{"partition_index": 0, "committed_offset": 0}]}]
    told = bob.ask(COMMIT, 9, group_id="b", topics=topics)["topics"][0]["partitions"]
    assert [one["error_code"] for one in told] == [Code.TOPIC_AUTHORIZATION_FAILED]
    assert gateway.groups.leases.leases("") == ()


def test_a_pattern_that_takes_long_is_refused() -> None:
    names, clock = [f"t{n}" for n in range(1_000)], count(0, 100)
    assert matching("t.*", names, lambda: 0) == {*names}
    assert matching("t.*", names, lambda: next(clock)) is None
    assert next(clock) < 1_000
    assert matching("(", [], lambda: 0) is None
