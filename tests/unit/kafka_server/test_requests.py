"""What is answered to each request: who may ask, offsets, epochs, records, and errors where they belong."""

from __future__ import annotations

import gc
import struct
import time
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords

import lithify
from lithify.kafka_protocol.codec import decode_response
from lithify.kafka_server.requests.fetch import _Gathered
from lithify.testing import memory_lake
from support.kafka.served import Everyone, OpenLogins, ServedLake, serving_kafka
from support.kafka.wire import WireClient

PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, HANDSHAKE, API_VERSIONS = 0, 1, 2, 3, 10, 17, 18
EPOCHS, CONFIGS, AUTHENTICATE, CLUSTER = 23, 32, 36, 60
ORDERS, SECRET = "shop.orders", "vault.secret"
FENCED, UNKNOWN_EPOCH, OUT_OF_RANGE, UNKNOWN, NOT_AUTHORIZED, UNKNOWN_ID = 74, 75, 1, 3, 29, 100


def records(*numbers: int) -> list[lithify.Record]:
    return [lithify.Record(key=b"k%d" % n, value=b"v%d" % n, timestamp=1000 + n, partition=0) for n in numbers]


@pytest.fixture(scope="module")
def served() -> Iterator[ServedLake]:
    lake = memory_lake()
    for name in ("shop/orders", "vault/secret"):
        lake.create_topic(name, 2).append(records(*range(10)))
    with serving_kafka(lake, OpenLogins(Everyone(hidden=frozenset({"vault"})))) as one:
        yield one


@pytest.fixture
def client(served: ServedLake) -> Iterator[WireClient]:
    with served.client() as one:
        yield one


def fetch(
    client: WireClient, offset: int = 0, *, version: int = 12, topic: str = ORDERS, **more: Any
) -> dict[str, Any]:
    """The first partition of the answer to a fetch."""
    of_partition = {name: more.pop(name) for name in ("current_leader_epoch", "partition") if name in more}
    asked = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 2**20, **of_partition}
    named = {"topic_id": more.pop("topic_id")} if "topic_id" in more else {"topic": topic}
    body = {"max_wait_ms": 0, "min_bytes": 1, "topics": [{**named, "partitions": [asked]}], **more}
    return client.ask(FETCH, version, **body)["responses"][0]["partitions"][0]


def values(data: bytes) -> list[tuple[int, bytes | None]]:
    """Offsets and values of batches."""
    found, batches = [], MemoryRecords(data)
    while batches.has_next():
        found += [(record.offset, record.value) for record in batches.next_batch()]
    return found


def described(client: WireClient, topic: str, is_so: Callable[[dict[str, Any]], bool] = lambda _told: True) -> Any:
    """The metadata of a topic, once it is known and so. A look at the catalog is up to 200 ms old."""
    deadline = time.monotonic() + 20
    while True:
        (told,) = client.ask(METADATA, 12, topics=[{"name": topic}])["topics"]
        if (told["error_code"] == 0 and is_so(told)) or time.monotonic() > deadline:
            return told
        time.sleep(0.02)


def epoch_of(client: WireClient, topic: str = ORDERS, after: int = -1) -> int:
    def is_so(told: dict[str, Any]) -> bool:
        return told["partitions"][0]["leader_epoch"] > after

    return described(client, topic, is_so)["partitions"][0]["leader_epoch"]


def offset(client: WireClient, timestamp: int, **more: Any) -> dict[str, Any]:
    asked = {"partition_index": 0, "timestamp": timestamp, **more}
    answer = client.ask(LIST_OFFSETS, 10, topics=[{"name": ORDERS, "partitions": [asked]}])
    return answer["topics"][0]["partitions"][0]


@pytest.mark.parametrize("version", range(5))
def test_each_api_is_told_with_the_versions_that_are_answered(client, version):
    told = {one["api_key"]: one for one in client.ask(API_VERSIONS, version)["api_keys"]}
    assert (told[PRODUCE]["min_version"], told[PRODUCE]["max_version"]) == (3, 13)  # else librdkafka does not fetch
    assert (told[LIST_OFFSETS]["min_version"], told[LIST_OFFSETS]["max_version"]) == (1, 10)
    assert 22 not in told  # InitProducerId: there are no transactions


def test_a_later_version_of_api_versions_is_answered_in_the_first_one(client):
    client.sock.sendall(struct.pack(">ihhih", 10, API_VERSIONS, 99, 5, -1))
    number, body = decode_response(API_VERSIONS, 0, client.frame())
    assert (number, body["error_code"]) == (5, 35)
    assert body["api_keys"] == [{"api_key": API_VERSIONS, "min_version": 0, "max_version": 4}]


@pytest.mark.parametrize(("key", "version"), [(22, 0), (9999, 1), (METADATA, 99), (LIST_OFFSETS, 11), (HANDSHAKE, 0)])
def test_what_is_not_answered_closes_the_connection(served, client, key, version):
    client.sock.sendall(struct.pack(">ihhih", 10, key, version, 1, -1))
    assert client.is_closed()
    assert served.closed[-1].startswith("it asked what is not answered here") or "not a request" in served.closed[-1]


@pytest.mark.parametrize("version", range(14))
def test_metadata_of_all_topics_has_those_that_may_be_read(served, client, version):
    told = client.ask(METADATA, version, topics=None if version else [])
    host, port = served.address
    assert told["brokers"] == [{**told["brokers"][0], "node_id": 7, "host": host, "port": port}]
    (topic,) = told["topics"]
    assert topic["name"] == ORDERS
    assert [(one["partition_index"], one["leader_id"]) for one in topic["partitions"]] == [(0, 7), (1, 7)]
    assert [one["isr_nodes"] for one in topic["partitions"]] == [[7], [7]]


def test_metadata_of_no_topics_has_none(client):
    assert client.ask(METADATA, 5, topics=[])["topics"] == []


def test_topics_that_are_unknown_or_hidden_get_their_error(client):
    told = client.ask(METADATA, 9, topics=[{"name": name} for name in (ORDERS, SECRET, "nothing")])["topics"]
    assert [(one["name"], one["error_code"]) for one in told] == [
        (ORDERS, 0),
        (SECRET, NOT_AUTHORIZED),
        ("nothing", UNKNOWN),
    ]


def test_a_topic_is_found_by_its_id(client):
    (by_name,) = client.ask(METADATA, 12, topics=[{"name": ORDERS}])["topics"]
    (by_id,) = client.ask(METADATA, 12, topics=[{"name": None, "topic_id": by_name["topic_id"]}])["topics"]
    assert by_id == by_name
    (unknown,) = client.ask(METADATA, 12, topics=[{"name": None, "topic_id": b"x" * 16}])["topics"]
    assert (unknown["name"], unknown["error_code"]) == (None, UNKNOWN_ID)
    (unknown,) = client.ask(METADATA, 11, topics=[{"name": "", "topic_id": b"x" * 16}])["topics"]
    assert (unknown["name"], unknown["error_code"]) == ("", UNKNOWN_ID)
    assert fetch(client, 3, version=16, topic_id=by_name["topic_id"])["high_watermark"] == 10
    assert fetch(client, 3, version=16, topic_id=b"x" * 16)["error_code"] == UNKNOWN_ID


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_this_gateway(client, version):
    told = client.ask(CLUSTER, version, endpoint_type=1)
    assert (told["error_code"], told["cluster_id"], told["controller_id"]) == (0, "lithify", 7)
    assert [one["broker_id"] for one in told["brokers"]] == [7]


def test_there_are_no_controllers(client):
    assert client.ask(CLUSTER, 1, endpoint_type=2)["error_code"] == 115


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [
        (-1, (10, -1)),
        (-2, (0, -1)),
        (-3, (9, 1009)),
        (-4, (0, -1)),
        (-5, (-1, -1)),
        (1004, (4, 1004)),
        (9999, (-1, -1)),
    ],
)
def test_offsets_are_listed(client, timestamp, found):
    told = offset(client, timestamp)
    assert (told["error_code"], told["offset"], told["timestamp"]) == (0, *found)


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_listed_in_each_version(client, version):
    partitions = [{"partition_index": n, "timestamp": -1} for n in (0, 2)]
    answer = client.ask(LIST_OFFSETS, version, topics=[{"name": ORDERS, "partitions": partitions}])
    assert [(one["error_code"], one["offset"]) for one in answer["topics"][0]["partitions"]] == [(0, 10), (UNKNOWN, -1)]


@pytest.mark.parametrize(
    ("key", "version", "name", "number"),
    [(LIST_OFFSETS, 7, "name", "partition_index"), (EPOCHS, 3, "topic", "partition")],
)
def test_a_partition_that_is_named_again_is_answered_once(client, key, version, name, number):
    """Each of a mebibyte of them would be looked up in files."""
    at = [{number: n, "timestamp": 1000 + time, "leader_epoch": 0} for time, n in enumerate((0, 1, 0, 0))]
    asked = [{name: ORDERS, "partitions": at}, {name: "nothing", "partitions": at}, {name: ORDERS, "partitions": at}]
    told = client.ask(key, version, topics=asked)["topics"]
    assert [(one[name], [p[number] for p in one["partitions"]]) for one in told] == [
        (ORDERS, [0, 1]),
        ("nothing", [0, 1]),
    ]


@pytest.mark.parametrize("version", range(4, 13))
def test_records_are_fetched_from_an_offset_on(client, version):
    told = fetch(client, 4, version=version)
    assert (told["error_code"], told["high_watermark"], told["last_stable_offset"]) == (0, 10, 10)
    assert [one for one in values(told["records"]) if one[0] >= 4] == [(n, b"v%d" % n) for n in range(4, 10)]


@pytest.mark.parametrize(("at", "code"), [(11, OUT_OF_RANGE), (-1, OUT_OF_RANGE), (10, 0)])
def test_offsets_beyond_the_log_are_out_of_range(client, at, code):
    told = fetch(client, at)
    assert (told["error_code"], told["records"]) == (code, b"")


@pytest.mark.parametrize(
    ("topic", "partition", "code"), [(SECRET, 0, 29), ("nothing", 0, 3), (ORDERS, 2, 3), (ORDERS, -1, 3)]
)
def test_a_partition_that_cannot_be_fetched_has_an_error_of_its_own(client, topic, partition, code):
    assert fetch(client, topic=topic, partition=partition)["error_code"] == code
    assert fetch(client)["error_code"] == 0


def test_an_epoch_that_is_not_the_one_of_the_log_is_refused(client):
    epoch = epoch_of(client)
    for known, code in ((epoch, 0), (-1, 0), (epoch + 1, UNKNOWN_EPOCH)):
        assert fetch(client, current_leader_epoch=known)["error_code"] == code
        assert offset(client, -1, current_leader_epoch=known)["error_code"] == code


def test_the_first_batch_comes_whatever_its_size_and_others_if_there_is_room(served, client):
    pair = [lithify.Record(key=b"k", value=b"v", partition=partition) for partition in (0, 1)]
    served.lake.create_topic("shop/pair", 2).append(pair)
    described(client, "shop.pair")
    asked = [{"partition": n, "fetch_offset": 0, "partition_max_bytes": 1} for n in (0, 1)]
    body = {"max_wait_ms": 0, "min_bytes": 1, "topics": [{"topic": "shop.pair", "partitions": asked}]}
    first, second = client.ask(FETCH, 12, max_bytes=1, **body)["responses"][0]["partitions"]
    assert values(first["records"]) == [(0, b"v")]
    assert (second["records"], second["error_code"]) == (b"", 0)
    _, second = client.ask(FETCH, 12, max_bytes=2**20, **body)["responses"][0]["partitions"]
    assert second["records"] == b""  # its own limit, when there are records already


def test_what_is_named_again_makes_no_answer_larger(client):
    asked = {"topic": ORDERS, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 2**20}] * 9}
    told = client.ask(FETCH, 12, max_wait_ms=0, min_bytes=1, topics=[asked] * 9)
    assert [len(one["partitions"]) for one in told["responses"]] == [1] + [0] * 8
    assert len(client.ask(METADATA, 12, topics=[{"name": ORDERS}] * 9)["topics"]) == 1
    resources = [{"resource_type": 2, "resource_name": ORDERS, "configuration_keys": None}] * 9
    assert len(client.ask(CONFIGS, 4, resources=resources)["results"]) == 1


def test_the_catalog_is_checked_once_for_a_request(served, client, monkeypatch):
    looks: list[None] = []
    change_tokens = served.lake.warehouse.store.change_tokens
    monkeypatch.setattr(
        type(served.lake.warehouse.store), "change_tokens", lambda _store: (looks.append(None), change_tokens())[1]
    )
    beyond = [{"partition": n % 2, "fetch_offset": 10**6, "partition_max_bytes": 1} for n in range(1000)]
    client.ask(FETCH, 12, max_wait_ms=0, min_bytes=1, topics=[{"topic": ORDERS, "partitions": beyond}])
    later = [{"partition": 0, "current_leader_epoch": 10**6, "leader_epoch": 0}] * 1000
    client.ask(EPOCHS, 4, topics=[{"topic": ORDERS, "partitions": later}])
    assert len(looks) <= 4


def test_a_fetch_that_waits_keeps_no_batches(client):
    asked = [{"topic": ORDERS, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 2**20}]}]
    client.send(FETCH, 12, max_wait_ms=2000, min_bytes=2**30, topics=asked)
    deadline = time.monotonic() + 1.5
    while time.monotonic() < deadline:
        time.sleep(0.3)
        gc.collect()
        kept = [one for one in gc.get_objects() if isinstance(one, _Gathered)]
    assert kept == []
    assert client.receive(FETCH, 12)["responses"][0]["partitions"][0]["records"]


def test_there_are_no_sessions(client):
    assert client.ask(FETCH, 12, session_id=0, session_epoch=0)["session_id"] == 0
    assert client.ask(FETCH, 12, session_id=5, session_epoch=1)["error_code"] == 70


def test_a_fetch_waits_for_records_that_come(served, client):
    topic = served.lake.create_topic("shop/late", 1)
    described(client, "shop.late")
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 2**20}
    topics = [{"topic": "shop.late", "partitions": [asked]}]
    client.send(FETCH, 12, max_wait_ms=30_000, min_bytes=1, topics=topics)
    time.sleep(0.1)
    topic.append(records(1))
    begun = time.monotonic()
    (told,) = client.receive(FETCH, 12)["responses"][0]["partitions"]
    assert values(told["records"]) == [(0, b"v1")]
    assert time.monotonic() - begun < 20


def test_a_fetch_without_records_ends_in_time(client):
    begun = time.monotonic()
    told = fetch(client, 10, max_wait_ms=200)
    assert (told["error_code"], told["records"]) == (0, b"")
    assert 0.2 <= time.monotonic() - begun < 20


def test_a_truncation_is_told_by_epochs(served, client):
    topic = served.lake.create_topic("shop/cut", 1)
    topic.append(records(*range(10)))
    before = epoch_of(client, "shop.cut")
    topic.truncate(0, 6)
    topic.append(records(77))
    after = epoch_of(client, "shop.cut", after=before)
    assert fetch(client, 9, topic="shop.cut", current_leader_epoch=before)["error_code"] == FENCED
    for known, code in ((after, 0), (before, FENCED)):
        asked = {"partition": 0, "current_leader_epoch": known, "leader_epoch": before}
        answer = client.ask(EPOCHS, 4, topics=[{"topic": "shop.cut", "partitions": [asked]}])
        (told,) = answer["topics"][0]["partitions"]
        assert told["error_code"] == code
        assert told["end_offset"] == (-1 if code else 6)
    assert (7 - 1, b"v77") in values(fetch(client, 6, topic="shop.cut", current_leader_epoch=after)["records"])


def test_the_latest_epoch_ends_where_the_log_ends_now(served, client):
    """Else a client that has read further by another gateway takes it for a truncation."""
    topic = served.lake.create_topic("shop/grows", 1)
    topic.append(records(0))
    epoch = epoch_of(client, "shop.grows")
    asked = {"partition": 0, "current_leader_epoch": epoch, "leader_epoch": epoch}
    for end in (2, 3):
        topic.append(records(end))
        answer = client.ask(EPOCHS, 4, topics=[{"topic": "shop.grows", "partitions": [asked]}])
        assert answer["topics"][0]["partitions"][0]["end_offset"] == end


def test_a_recreated_topic_has_another_id(served, client):
    served.lake.create_topic("shop/again", 1).append(records(1, 2))
    before = described(client, "shop.again")
    served.lake.delete_topic("shop/again")
    served.lake.create_topic("shop/again", 1)
    after = described(client, "shop.again", lambda told: told["topic_id"] != before["topic_id"])
    assert after["topic_id"] not in (before["topic_id"], bytes(16))
    assert fetch(client, 0, version=16, topic_id=before["topic_id"])["error_code"] == UNKNOWN_ID


@pytest.mark.parametrize("version", range(3, 14))
def test_produce_is_refused(client, version):
    (topic,) = client.ask(METADATA, 12, topics=[{"name": ORDERS}])["topics"]
    data = [{"name": ORDERS, "topic_id": topic["topic_id"], "partition_data": [{"index": 0, "records": b"x"}]}]
    answer = client.ask(PRODUCE, version, acks=1, topic_data=data)
    (told,) = answer["responses"][0]["partition_responses"]
    assert (told["error_code"], told["base_offset"]) == (NOT_AUTHORIZED, -1)


def test_produce_that_expects_no_answer_closes_the_connection(client):
    client.send(PRODUCE, 9, acks=0, topic_data=[])
    assert client.is_closed()


def test_the_settings_of_topics_are_described(client):
    asked = [{"resource_type": 2, "resource_name": name, "configuration_keys": None} for name in (ORDERS, SECRET)]
    of_topic, hidden, of_broker = client.ask(
        CONFIGS, 4, resources=[*asked, {"resource_type": 4, "resource_name": "7", "configuration_keys": None}]
    )["results"]
    told = {one["name"]: one["value"] for one in of_topic["configs"]}
    assert told["cleanup.policy"] == "compact"
    assert (hidden["error_code"], hidden["configs"]) == (NOT_AUTHORIZED, [])
    assert (of_broker["error_code"], of_broker["configs"]) == (0, [])
    (one,) = client.ask(CONFIGS, 1, resources=[{**asked[0], "configuration_keys": ["cleanup.policy"]}])["results"]
    assert [row["name"] for row in one["configs"]] == ["cleanup.policy"]


def test_a_cluster_that_copies_a_topic_gives_it_its_policy(client):
    """MirrorMaker takes what can be written and is not a default. A broker refuses names that it does not know."""
    asked = {"resource_type": 2, "resource_name": ORDERS, "configuration_keys": None}
    (told,) = client.ask(CONFIGS, 4, resources=[asked])["results"]
    taken = {one["name"]: one["value"] for one in told["configs"] if not one["read_only"] and one["config_source"] != 5}
    assert taken == {"cleanup.policy": "compact"}
    assert {one["name"] for one in told["configs"] if one["read_only"]} > {"compaction.mode", "compression.type"}


@pytest.mark.parametrize("version", range(7))
def test_without_a_database_groups_have_no_coordinator(client, version):
    told = client.ask(FIND_COORDINATOR, version, key="g", coordinator_keys=["g"], key_type=0)
    assert (told if version < 4 else told["coordinators"][0])["error_code"] == 15


def test_there_are_no_transactions(client):
    told = client.ask(FIND_COORDINATOR, 4, coordinator_keys=["t"], key_type=1)
    assert told["coordinators"][0]["error_code"] == 53


@pytest.fixture(scope="module")
def guarded() -> Iterator[ServedLake]:
    lake = memory_lake()
    lake.create_topic("shop/orders", 2).append(records(*range(10)))
    with serving_kafka(lake, OpenLogins(None, {"right": Everyone("alice")})) as one:
        yield one


def test_before_a_login_nothing_else_is_answered(guarded):
    with guarded.client() as client:
        told = {one["api_key"]: one["max_version"] for one in client.ask(API_VERSIONS, 3)["api_keys"]}
    assert {API_VERSIONS, HANDSHAKE, AUTHENTICATE} < told.keys()
    for key in told.keys() - {API_VERSIONS, HANDSHAKE, AUTHENTICATE}:
        with guarded.client() as client:
            client.ask(API_VERSIONS, 3)
            client.send(key, told[key])
            assert client.is_closed()
            assert guarded.closed[-1].startswith("it did not log in: ")


def test_a_client_logs_in_with_its_token(guarded):
    with guarded.client() as client:
        assert client.ask(HANDSHAKE, 1, mechanism="PLAIN")["error_code"] == 0
        assert client.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0right")["error_code"] == 0
        assert len(client.ask(METADATA, 12, topics=None)["topics"]) == 1


@pytest.mark.parametrize("sent", [b"\0any\0wrong", b"", b"\0\0", b"right", b"\0any\0right\0more", b"\0any\0\xff"])
def test_a_wrong_token_is_told_and_closes_the_connection(guarded, sent):
    with guarded.client() as client:
        client.ask(HANDSHAKE, 1, mechanism="PLAIN")
        told = client.ask(AUTHENTICATE, 2, auth_bytes=sent)
        assert (told["error_code"], told["error_message"]) == (58, "the password is not a valid token")
        assert client.is_closed()


def test_another_mechanism_is_not_known(guarded):
    with guarded.client() as client:
        assert client.ask(HANDSHAKE, 1, mechanism="SCRAM-SHA-1") == {
            "error_code": 33,
            "mechanisms": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
        }
        assert client.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0right")["error_code"] == 34


def test_a_token_that_is_revoked_closes_the_connection(monkeypatch):
    monkeypatch.setattr("lithify.kafka_server.requests.login.TOKEN_CHECKED_S", 0.0)
    logins = OpenLogins(None, {"right": Everyone("alice")})
    with serving_kafka(memory_lake(), logins) as one, one.client() as client:
        client.ask(HANDSHAKE, 1, mechanism="PLAIN")
        client.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0right")
        assert client.ask(METADATA, 12, topics=None)["topics"] == []
        logins.callers.clear()
        client.send(METADATA, 12, topics=None)
        assert client.is_closed()


def test_a_token_that_is_revoked_in_a_wait_gets_no_records(monkeypatch):
    monkeypatch.setattr("lithify.kafka_server.requests.login.TOKEN_CHECKED_S", 0.0)
    lake, logins = memory_lake(), OpenLogins(None, {"right": Everyone("alice")})
    topic = lake.create_topic("orders", 1)
    with serving_kafka(lake, logins) as one, one.client() as client:
        client.ask(HANDSHAKE, 1, mechanism="PLAIN")
        client.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0right")
        described(client, "orders")
        asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 2**20}
        client.send(FETCH, 12, max_wait_ms=30_000, min_bytes=1, topics=[{"topic": "orders", "partitions": [asked]}])
        time.sleep(0.2)
        logins.callers.clear()
        topic.append(records(1))
        assert client.is_closed()


def test_many_clients_wait_at_once(served):
    clients = [served.client() for _ in range(50)]
    asked = [{"topic": ORDERS, "partitions": [{"partition": 0, "fetch_offset": 10, "partition_max_bytes": 2**20}]}]
    for one in clients:
        one.send(FETCH, 12, max_wait_ms=500, min_bytes=1, topics=asked)
    done = [Thread(target=lambda one=one: one.receive(FETCH, 12)) for one in clients]
    for thread in done:
        thread.start()
    for thread in done:
        thread.join(30)
    assert not any(thread.is_alive() for thread in done)
    for one in clients:
        one.close()
