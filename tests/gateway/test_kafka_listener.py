"""The listener for Kafka's clients: the rules about loopback, tokens and TLS are those of the HTTP API."""

from __future__ import annotations

import json
import sqlite3
import ssl
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
import requests
from confluent_kafka import Consumer, KafkaException, TopicPartition

import lithify
from lithify.api.lake import Lake
from lithify.errors import RefusedError, UnusableEnvironmentError
from lithify.gateway.access.failures import AT_ONCE
from lithify.gateway.listening.bound import bind
from lithify.gateway.listening.listen import Address, ListenAddress
from lithify.gateway.process.kafka_listener import KafkaListener
from lithify.gateway.process.opened import open_gateway
from lithify.gateway.process.options import GatewayOptions, KafkaAddresses
from lithify.reports.events import CleanerEvent
from support.kafka.listening import HERE, listening
from support.kafka.scram_client import AioKafka
from support.kafka.wire import WireClient
from support.pages.text import blocks
from support.servers.certificates import a_certificate

ANYWHERE = ListenAddress("0.0.0.0", 0)
METADATA, FIND, HANDSHAKE, API_VERSIONS, AUTHENTICATE = 3, 10, 17, 18, 36
WAIT_S = 30


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = lithify.open(str(tmp_path / "lake"))
    for name in ("shop/orders", "vault/secret"):
        lake.create_topic(name, 1).append([lithify.Record(key=b"k", value=b"v")])
    return lake


def client_of(listener: KafkaListener, context: ssl.SSLContext | None = None) -> WireClient:
    host, _, port = listener.address.rpartition(":")
    return WireClient((host, int(port)), context)


def secured(
    listener: KafkaListener, certificate: Path, password: str, *, mechanism: str = "PLAIN", user: str = "any"
) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": listener.address,
            "group.id": "readers",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(certificate),
            "log_level": 0,
        }
    )


def test_on_this_machine_no_login_is_needed(lake):
    with listening(lake, []) as listener, client_of(listener) as client:
        assert [one["name"] for one in client.ask(METADATA, 12, topics=None)["topics"]] == [
            "shop.orders",
            "vault.secret",
        ]


def test_topics_that_come_to_one_name_are_told(tmp_path):
    lake = lithify.open(str(tmp_path / "lake"))
    for name in ("shop/orders", "shop.orders", "other"):
        lake.create_topic(name, 1)
    with listening(lake, []) as listener, client_of(listener) as client:
        assert listener.warnings == ("shop.orders and shop/orders: both would be shop.orders to clients of Kafka",)
        assert [one["name"] for one in client.ask(METADATA, 12, topics=None)["topics"]] == ["other"]


def test_a_client_with_a_token_reads_what_it_may(lake, tmp_path):
    files = a_certificate(tmp_path, "gateway", datetime.now(UTC))
    token = lake.tokens().create("alice", ["consume:shop"]).token
    told: list[CleanerEvent] = []
    with listening(lake, told, files, needs_token=True) as listener:
        consumer = secured(listener, files.certificate, token)
        assert [*consumer.list_topics(timeout=WAIT_S).topics] == ["shop.orders"]
        consumer.assign([TopicPartition("shop.orders", 0, 0)])
        record = consumer.poll(WAIT_S)
        assert (record.error(), record.value()) == (None, b"v")
        consumer.close()
        stranger = secured(listener, files.certificate, "wrong")
        with pytest.raises(KafkaException):
            stranger.list_topics(timeout=3)
        stranger.close()
    assert [event.facts["error_code"] for event in told] == ["AccessDenied"]
    assert "the password is not a valid token" in told[0].facts["error"]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_proves_that_it_has_a_token_and_does_not_send_it(lake, tmp_path, mechanism):
    files = a_certificate(tmp_path, "gateway", datetime.now(UTC))
    alice, bob = (lake.tokens().create(name, ["consume:shop"]) for name in ("alice", "bob"))
    told: list[CleanerEvent] = []
    with listening(lake, told, files, needs_token=True) as listener:
        for user in (alice.id, f"lithify_{alice.id}"):
            consumer = secured(listener, files.certificate, alice.token, mechanism=mechanism, user=user)
            assert [*consumer.list_topics(timeout=WAIT_S).topics] == ["shop.orders"]
            consumer.close()
        assert told == []
        for user in (bob.id, "nobody"):
            stranger = secured(listener, files.certificate, alice.token, mechanism=mechanism, user=user)
            with pytest.raises(KafkaException):
                stranger.list_topics(timeout=3)
            stranger.close()
    assert "the user is not the id of a token" in told[0].facts["error"]


def test_a_token_of_a_version_without_scram_is_told_and_goes_on_with_plain(lake, tmp_path):
    token = lake.tokens().create("alice", ["consume:shop"])
    with closing(sqlite3.connect(tmp_path / "lake" / "catalog.db")) as catalog:
        catalog.execute("DROP TABLE lithify_token_scram")
        catalog.commit()
    told: list[CleanerEvent] = []
    with listening(lake, told, needs_token=True) as listener:
        with client_of(listener) as client:
            scram = AioKafka("SCRAM-SHA-256", token.id, token.token)
            client.ask(HANDSHAKE, 1, mechanism="SCRAM-SHA-256")
            first = client.ask(AUTHENTICATE, 2, auth_bytes=scram.first())
            last = client.ask(AUTHENTICATE, 2, auth_bytes=scram.last(first["auth_bytes"].decode()))
            assert last["error_code"] == 58
            assert "or it was created before SCRAM was supported" in last["error_message"]
        with client_of(listener) as client:
            client.ask(HANDSHAKE, 1, mechanism="PLAIN")
            assert client.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0" + token.token.encode())["error_code"] == 0
    assert "no keys of SCRAM can be read for the token of alice" in told[0].facts["error"]


def test_logins_that_fail_are_in_the_audit_log_up_to_a_rate_and_right_tokens_still_count(lake, tmp_path):
    audit, token = tmp_path / "audit.jsonl", lake.tokens().create("alice", ["consume:shop"]).token
    with listening(lake, [], needs_token=True, audit=audit) as listener:
        for _ in range(40):
            with client_of(listener) as client:
                client.ask(HANDSHAKE, 1, mechanism="PLAIN")
                wrong = client.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0" + b"x" * 10)
                assert wrong["error_code"] == 58
        assert "too often" in wrong["error_message"]
        with client_of(listener) as client:
            client.ask(HANDSHAKE, 1, mechanism="PLAIN")
            assert client.ask(AUTHENTICATE, 2, auth_bytes=b"\0any\0" + token.encode())["error_code"] == 0
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    assert 30 <= len(lines) < 40
    assert {key: lines[0][key] for key in ("who", "token", "address", "what", "status", "code")} == {
        "who": None,
        "token": None,
        "address": "127.0.0.1",
        "what": "kafka-login",
        "status": 401,
        "code": "AccessDenied",
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_login_without_the_database_is_closed_so_that_the_client_tries_again(lake, tmp_path, mechanism):
    token, audit = lake.tokens().create("alice", ["consume:shop"]), tmp_path / "audit.jsonl"
    with listening(lake, [], needs_token=True, audit=audit) as listener, client_of(listener) as client:
        catalog = tmp_path / "lake" / "catalog.db"
        catalog.rename(tmp_path / "away")
        client.ask(HANDSHAKE, 1, mechanism=mechanism)
        sent = b"\0any\0" + token.token.encode()
        if mechanism != "PLAIN":
            scram = AioKafka(mechanism, token.id, token.token)
            first = client.ask(AUTHENTICATE, 2, auth_bytes=scram.first())
            sent = scram.last(first["auth_bytes"].decode())
        client.send(AUTHENTICATE, 2, auth_bytes=sent)
        assert client.is_closed()
        (tmp_path / "away").rename(catalog)
    assert not audit.exists()


def test_failures_by_both_doors_of_a_gateway_count_together(lake, tmp_path):
    lake.tokens().create("alice", ["admin"])
    options = GatewayOptions("g1", HERE, kafka=KafkaAddresses(HERE), require_tokens=True, audit=tmp_path / "audit")
    daemon = open_gateway(lake, options)
    daemon.serving.start()
    daemon.kafka.start()
    try:
        for _ in range(AT_ONCE):
            with client_of(daemon.kafka) as client:
                client.send(METADATA, 12, topics=None)
                assert client.is_closed()
        answer = requests.get(f"{daemon.url}/api/v1/status", timeout=WAIT_S)
        assert (answer.status_code, answer.json()["code"]) == (429, "Busy")
    finally:
        daemon.serving.close()
        daemon.kafka.close()
        daemon.audited.close()
    what = [json.loads(line)["what"] for line in (tmp_path / "audit").read_text().splitlines()]
    assert what == ["start", *["kafka-login"] * AT_ONCE]


def test_the_program_of_the_page_reads_a_record(lake, capsys):
    (program,) = (block.text for block in blocks("docs/data-out/kafka-clients.md") if block.language == "python")
    assert "127.0.0.1:9092" in program
    with listening(lake, []) as listener:
        exec(program.replace("127.0.0.1:9092", listener.address), {})
    assert capsys.readouterr().out == "b'k' b'v' 0\n"


def test_a_revoked_token_is_refused_within_seconds(lake, monkeypatch):
    monkeypatch.setattr("lithify.kafka_server.requests.login.TOKEN_CHECKED_S", 0.1)
    monkeypatch.setattr("lithify.gateway.access.token_cache.FRESH_S", 0.1)
    monkeypatch.setattr("lithify.gateway.access.token_cache.USABLE_S", 0.2)
    token = lake.tokens().create("alice", ["consume:shop"]).token
    with listening(lake, [], needs_token=True) as listener, client_of(listener) as client:
        client.ask(17, 1, mechanism="PLAIN")
        assert client.ask(36, 2, auth_bytes=b"\0any\0" + token.encode())["error_code"] == 0
        client.ask(METADATA, 12, topics=None)
        lake.tokens().revoke("alice")
        with pytest.raises(ConnectionError):
            for _ in range(100):
                client.ask(METADATA, 12, topics=None)
                time.sleep(0.1)


def test_without_tls_no_client_of_tls_is_answered_and_the_other_way_round(lake, tmp_path):
    files = a_certificate(tmp_path, "gateway", datetime.now(UTC))
    with listening(lake, [], files) as listener, client_of(listener) as client:
        client.send(API_VERSIONS, 3)
        with pytest.raises(ConnectionError):
            client.frame()


@pytest.mark.parametrize(
    ("kafka", "why"),
    [
        (KafkaAddresses(ANYWHERE), "other machines reach it"),
        (KafkaAddresses(ANYWHERE, ListenAddress("gateway.example", 9092)), "there is no valid token"),
    ],
)
def test_on_another_address_it_needs_tokens_and_tls(tmp_path, kafka, why):
    lake = lithify.open(str(tmp_path / "lake"))
    with pytest.raises(RefusedError, match=why):
        open_gateway(lake, GatewayOptions("g1", HERE, kafka=kafka))


def test_on_all_addresses_it_needs_one_to_tell_clients(tmp_path):
    lake = lithify.open(str(tmp_path / "lake"))
    risks = {"insecure_no_tokens": True, "insecure_no_tls": True}
    with pytest.raises(RefusedError, match="cannot be told to connect to") as raised:
        open_gateway(lake, GatewayOptions("g1", HERE, kafka=KafkaAddresses(ANYWHERE), **risks))
    assert "--kafka-advertise" in raised.value.hint


@pytest.mark.parametrize(
    ("advertised", "told"),
    [
        (None, ("127.0.0.1", 0)),
        (Address("localhost", 9093), ("localhost", 9093)),
        (Address("localhost", 0), ("localhost", 0)),
        (Address("gateway.example", 9093), ("gateway.example", 9093)),
        (Address("fe80::7", 9093), ("fe80::7", 9093)),
    ],
)
def test_clients_are_told_the_address_as_it_is_given(lake, advertised, told):
    with listening(lake, [], advertised=advertised) as listener:
        port = listener.serving.taken.getsockname()[1]
        with WireClient(("127.0.0.1", port)) as client:
            (broker,) = client.ask(METADATA, 12, topics=[])["brokers"]
            found = client.ask(FIND, 4, key_type=0, coordinator_keys=["g"])["coordinators"][0]
        expected = told[0], told[1] or port
        assert {(broker["host"], broker["port"]), (found["host"], found["port"])} == {expected}
        is_other = advertised is not None
        assert listener.listens == f"127.0.0.1:{port}" + (f"; they connect to {listener.address}" if is_other else "")


def test_clients_read_by_ipv6(lake):
    with listening(lake, [], host="::1") as listener:
        assert listener.address.startswith("[::1]:")
        consumer = Consumer({"bootstrap.servers": listener.address, "group.id": "readers", "log_level": 0})
        consumer.assign([TopicPartition("shop.orders", 0, 0)])
        assert consumer.poll(WAIT_S).value() == b"v"
        consumer.close()


def test_a_certificate_of_localhost_fits_clients_of_localhost(lake, tmp_path):
    files = a_certificate(tmp_path, "localhost", datetime.now(UTC), host="localhost")
    with listening(lake, [], files, advertised=Address("localhost", 0)) as listener:
        consumer = Consumer(
            {
                "bootstrap.servers": listener.address,
                "group.id": "readers",
                "security.protocol": "SSL",
                "ssl.ca.location": str(files.certificate),
                "log_level": 0,
            }
        )
        consumer.assign([TopicPartition("shop.orders", 0, 0)])
        assert consumer.poll(WAIT_S).value() == b"v"
        consumer.close()


def test_two_gateways_that_tell_one_address_say_so(lake):
    first, second = list[CleanerEvent](), list[CleanerEvent]()
    same = Address("gateway.example", 9093)
    with listening(lake, first, advertised=same), listening(lake, second, advertised=same):
        deadline = time.monotonic() + WAIT_S
        while not (first and second) and time.monotonic() < deadline:
            time.sleep(0.1)
    for told in (first, second):
        assert [event.facts["error_code"] for event in told] == ["Refused"]
        assert "another gateway has the address gateway.example:9093" in told[0].facts["error"]


def test_a_port_that_is_taken_is_told(tmp_path):
    taken = bind(HERE)
    with pytest.raises(UnusableEnvironmentError, match="cannot be listened on") as raised:
        open_gateway(
            lithify.open(str(tmp_path / "lake")), GatewayOptions("g1", HERE, kafka=KafkaAddresses(taken.address))
        )
    assert "--kafka-listen" in raised.value.hint
    taken.socket.close()


def test_a_damaged_log_is_an_error_of_its_partition(tmp_path):
    lake = lithify.open(str(tmp_path / "lake"))
    topic = lake.create_topic("orders", 2)
    topic.append([lithify.Record(key=b"k", value=b"v", partition=partition) for partition in (0, 1)])
    (segment,) = lake.warehouse.store.segments(topic.state(), [0])
    Path(segment.path.removeprefix("file://")).write_bytes(b"nothing of it")
    told: list[CleanerEvent] = []
    with listening(lake, told) as listener, client_of(listener) as client:
        asked = [{"partition": n, "fetch_offset": 0, "partition_max_bytes": 2**20} for n in (0, 1)]
        answer = client.ask(1, 12, max_wait_ms=0, min_bytes=1, topics=[{"topic": "orders", "partitions": asked}])
        first, second = answer["responses"][0]["partitions"]
        assert (first["error_code"], first["records"]) == (56, b"")
        assert second["error_code"] == 0
        assert b"v" in second["records"]
        client.ask(1, 12, max_wait_ms=0, min_bytes=1, topics=[{"topic": "orders", "partitions": asked}])
    assert [event.facts["error_code"] for event in told] == ["Damaged"]
    assert segment.path in told[0].facts["error"]


def test_each_reason_for_which_connections_are_closed_is_told_once(lake):
    told: list[CleanerEvent] = []
    tls, large, no_request = b"\x16\x03\x01\x02", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x01x"
    with listening(lake, told) as listener:
        for sent in (tls, large, b"\x7f\x00\x00\x00", no_request, tls):
            with client_of(listener) as client:
                client.sock.sendall(sent)
                assert client.is_closed()
    reasons = [event.facts["error"].partition("was closed: ")[2] for event in told]
    assert len(reasons) == 3
    assert "speaks TLS" in reasons[0] and "a frame of" in reasons[1] and "not a request" in reasons[2]


def test_a_catalog_that_cannot_be_read_is_not_told_as_a_client_without_rights(tmp_path):
    lake = lithify.open(str(tmp_path / "lake"))
    lake.create_topic("orders", 1)
    told: list[CleanerEvent] = []
    with listening(lake, told) as listener:
        (tmp_path / "lake" / "catalog.db").write_bytes(b"nothing of it")
        time.sleep(0.5)  # until what it has looked up is too old
        with client_of(listener) as client:
            client.send(METADATA, 12, topics=None)
            assert client.is_closed()
    events = [(event.facts["error_code"], event.facts["error"]) for event in told if "a Kafka client" in str(event)]
    assert [code for code, _ in events] == ["Warehouse"]
    assert "at 127.0.0.1 was closed: " in events[0][1]


def test_connections_leave_files_for_the_work_of_the_gateway(lake, monkeypatch):
    monkeypatch.setattr("lithify.gateway.listening.connections.getrlimit", lambda _kind: (40, 40))
    with listening(lake, []) as listener:
        clients = [client_of(listener) for _ in range(12)]
        for client in clients[:2]:
            assert client.is_closed()
        for client in clients[2:]:
            assert client.ask(API_VERSIONS, 3)["error_code"] == 0
        for client in clients:
            client.close()


@pytest.mark.skipif("jemalloc" not in pa.supported_memory_backends(), reason="this build of Arrow has no jemalloc")
def test_a_gateway_that_serves_parts_of_topics_takes_small_pages(lake: Lake) -> None:
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        with listening(lake, []):
            assert pa.default_memory_pool().backend_name == "jemalloc"
    finally:
        pa.set_memory_pool(before)
