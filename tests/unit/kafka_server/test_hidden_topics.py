"""A topic that a caller cannot read is answered as one that is not there, so that names cannot be tried."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import lithify
from lithify.api.wiring import groups_of
from lithify.coordination.leases.memory import MemoryCoordination
from lithify.kafka_server.groups.seat import Shared
from lithify.kafka_server.logs.kafka_names import may_be_of
from lithify.testing import memory_lake
from support.kafka.served import Everyone, OpenLogins, ServedLake, serving_kafka

PARTITION = {"partition": 0, "partition_index": 0, "index": 0}
NEWER = {"member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 9000, "topic_partitions": []}
OLDER = {"group_id": "older", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}


def subscription(name: str) -> bytes:
    return b"\0\0\0\0\0\1" + len(name).to_bytes(2, "big") + name.encode() + b"\xff\xff\xff\xff"


def requests(name: str) -> dict[tuple[int, int], dict[str, Any]]:
    """One of each kind that names topics, by its key and version."""
    at = {"fetch_offset": 0, "partition_max_bytes": 1000, "leader_epoch": 0, "timestamp": -1, "committed_offset": 1}
    topic = {"name": name, "topic": name, "partitions": [{**PARTITION, **at}], "partition_indexes": [0]}
    records = {"name": name, "partition_data": [{"index": 0, "records": b""}]}
    return {
        (0, 3): {"acks": 1, "topic_data": [records]},
        (1, 12): {"topics": [topic], "max_wait_ms": 0, "max_bytes": 1000},
        (2, 7): {"topics": [topic]},
        (3, 8): {"topics": [{"name": name}]},
        (3, 12): {"topics": [{"name": name}]},
        (8, 8): {"group_id": "g", "topics": [topic]},
        (9, 7): {"group_id": "g", "topics": [topic]},
        (9, 8): {"groups": [{"group_id": "g", "topics": [topic]}]},
        (11, 4): {**OLDER, "protocols": [{"name": "range", "metadata": subscription(name)}]},
        (23, 3): {"topics": [topic]},
        (32, 4): {"resources": [{"resource_type": 2, "resource_name": name}]},
        (47, 0): {"group_id": "g", "topics": [topic]},
        (68, 1): {**NEWER, "group_id": name, "subscribed_topic_names": [name]},
    }


@pytest.fixture(scope="module")
def served() -> Iterator[ServedLake]:
    lake = memory_lake()
    for name in ("shop/orders", "vault/secret", "shop.vault/secret"):
        lake.create_topic(name, 1).append([lithify.Record(b"k", b"v")])
    shared = Shared(groups_of(lake.warehouse, None), MemoryCoordination())
    hidden = Everyone(hidden=frozenset({"vault", "shop.vault"}))
    with serving_kafka(lake, OpenLogins(hidden), groups=shared) as one, one.client() as client:
        client.ask(8, 8, **requests("shop.orders")[8, 8])  # so that there is a group
        yield one


@pytest.mark.parametrize(("key", "version"), [*requests("")])
@pytest.mark.parametrize(("stream", "code"), [("vault", 29), ("shop.vault", 3)])
def test_a_caller_without_rights_cannot_tell_whether_a_topic_is_there(served, key, version, stream, code):
    told = []
    for name in (f"{stream}.secret", f"{stream}.absent"):
        with served.client() as client:
            answer = str(client.ask(key, version, **requests(name)[key, version]))
            told.append(answer.replace(name, "NAME"))
    if key != 11:  # members get random ids
        assert told[0] == told[1]
    elif code == 29:
        assert "'error_code': 30" in told[0] and "'error_code': 30" in told[1]
    else:
        assert "'error_code': 79" in told[0] and "'error_code': 79" in told[1]
    if key not in (0, 9, 11, 68):
        assert f"'error_code': {code}" in told[0]


def test_an_id_of_a_hidden_topic_is_answered_as_one_of_none(served):
    with serving_kafka(served.lake) as admin, admin.client() as client:
        (known,) = client.ask(3, 12, topics=[{"name": "vault.secret"}])["topics"]
    with served.client() as client:
        for topic_id in (known["topic_id"], b"x" * 16):
            (told,) = client.ask(3, 12, topics=[{"name": None, "topic_id": topic_id}])["topics"]
            assert (told["error_code"], told["name"], told["partitions"]) == (100, None, [])
            asked = [{**PARTITION, "fetch_offset": 0, "partition_max_bytes": 1000}]
            told = client.ask(1, 16, topics=[{"topic_id": topic_id, "partitions": asked}], max_wait_ms=0, max_bytes=9)
            assert told["responses"][0]["partitions"][0]["error_code"] == 100
            offset = {
                "topic_id": topic_id,
                "partition_indexes": [0],
                "partitions": [{**PARTITION, "committed_offset": 1}],
            }
            (told,) = client.ask(8, 10, group_id="g", topics=[offset])["topics"]
            assert told["partitions"][0]["error_code"] == 100
            (told,) = client.ask(9, 10, groups=[{"group_id": "g", "topics": [offset]}])["groups"]
            assert [one["partitions"][0]["error_code"] for one in told["topics"]] == [100]


def test_a_hidden_topic_is_not_loaded(served, monkeypatch):
    loaded: list[str] = []
    load_at = served.lake.warehouse.store.load_at
    monkeypatch.setattr(
        served.lake.warehouse.store, "load_at", lambda name, token: loaded.append(str(name)) or load_at(name, token)
    )
    with serving_kafka(served.lake, OpenLogins(Everyone(hidden=frozenset({"vault"})))) as one, one.client() as client:
        client.ask(3, 12, topics=[{"name": name} for name in ("vault.secret", "shop.orders")])
        client.ask(2, 7, **requests("vault.secret")[2, 7])
    assert loaded == ["shop/orders"]


@pytest.mark.parametrize(
    ("name", "stream", "may"),
    [
        ("shop.orders", "shop", True),
        ("shopping.orders", "shop", False),
        ("shop", "shop", False),
        ("orders", "default", True),
        ("shop.orders", "default", False),
        ("pulsar.public.eu.a", "pulsar.public/eu", True),
        ("mapr._2Fa.b", "mapr.%2Fa", True),
    ],
)
def test_names_that_topics_of_a_stream_may_have(name, stream, may):
    assert may_be_of(name, stream) is may
