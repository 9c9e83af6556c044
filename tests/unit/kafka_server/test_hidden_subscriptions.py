"""A member is not told what others in its group read if it may not read that, however it comes into the group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from lithify.api.wiring import groups_of
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.groups.seat import Shared
from lithify.model.access.roles import ALL
from lithify.testing import memory_lake
from support.kafka.served import Everyone, OpenLogins, ServedLake, serving_kafka
from support.kafka.wire import WireClient

JOIN, SYNC, HANDSHAKE, AUTHENTICATE = 11, 14, 17, 36
SECRET, OF_A_LONGER_STREAM = "vault.secret", "shop.eu.secret"


@pytest.fixture(scope="module")
def served() -> Iterator[ServedLake]:
    lake = memory_lake()
    for name in ("shop/orders", "vault/secret", "shop.eu/secret"):
        lake.create_topic(name, 1)
    hidden = frozenset({"vault", "shop.eu", ALL})
    logins = OpenLogins(None, {"shop": Everyone("shop", hidden, token_id="shop"), "all": Everyone(token_id="all")})
    shared = Shared(groups_of(lake.warehouse, None), MemoryCoordination())
    with serving_kafka(lake, logins, groups=shared) as one:
        yield one


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as one:
        yield one


def client(served: ServedLake, stack: ExitStack, token: str) -> WireClient:
    one = stack.enter_context(served.client())
    one.ask(HANDSHAKE, 1, mechanism="PLAIN")
    assert one.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0" + token.encode())["error_code"] == Code.NONE
    return one


def joining(group: str, *topics: str, member_id: str = "") -> dict[str, Any]:
    names = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in topics)
    metadata = b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"
    times = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 2_000}
    protocols = [{"name": "range", "metadata": metadata}]
    return {"group_id": group, "member_id": member_id, "protocol_type": "consumer", "protocols": protocols, **times}


def test_a_leader_that_waited_is_not_told_of_topics_that_it_may_not_read(served, stack):
    first, other = (client(served, stack, token) for token in ("shop", "all"))
    first.send(JOIN, 3, **joining("waiting"))
    came = other.ask(JOIN, 3, **joining("waiting", SECRET))
    told = first.receive(JOIN, 3)
    assert (told["error_code"], told["leader"], told["members"]) == (Code.GROUP_AUTHORIZATION_FAILED, "", [])
    assert came["error_code"] == Code.NONE
    again = other.ask(JOIN, 3, **joining("waiting", SECRET, member_id=came["member_id"]))
    assert (again["leader"], len(again["members"])) == (came["member_id"], 1)


@pytest.mark.parametrize("name", [OF_A_LONGER_STREAM, "shop.eu.absent"])
def test_whether_a_topic_is_there_cannot_be_tried_by_a_group(served, stack, name):
    first, second = client(served, stack, "shop"), client(served, stack, "shop")
    member_id = first.ask(JOIN, 3, **joining(f"of.{name}", name))["member_id"]
    second.send(JOIN, 3, **joining(f"of.{name}"))
    first.send(JOIN, 3, **joining(f"of.{name}", name, member_id=member_id))
    assert second.receive(JOIN, 3)["error_code"] == Code.NONE


def test_members_that_may_read_a_topic_keep_others_out(served, stack):
    reader = client(served, stack, "all")
    assert reader.ask(JOIN, 3, **joining("kept", OF_A_LONGER_STREAM))["error_code"] == Code.NONE
    stranger = client(served, stack, "shop")
    assert stranger.ask(JOIN, 3, **joining("kept"))["error_code"] == Code.GROUP_AUTHORIZATION_FAILED
