"""Strangers that connect to the port of Kafka's clients, by hundreds, keep nobody else away."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from threading import Thread

import pytest
import requests

import lithify
from lithify.gateway.listening import connections
from lithify.gateway.listening.listen import ListenAddress
from lithify.gateway.process.daemon import GatewayDaemon
from lithify.gateway.process.opened import open_gateway
from lithify.gateway.process.options import GatewayOptions, KafkaAddresses
from lithify.reports.events import CleanerEvent
from support.kafka.wire import WireClient

HERE = ListenAddress("127.0.0.1", 0)
MOST, STRANGERS = 40, 300
FETCH, METADATA = 1, 3
HALF = b"\x00\x00\x40\x00" + bytes(100)
"""The begin of a request of 16 KiB."""


@pytest.fixture
def told() -> list[CleanerEvent]:
    return []


@pytest.fixture
def gateway(tmp_path, monkeypatch, told) -> Iterator[GatewayDaemon]:
    """Without Spark; it takes few connections."""
    monkeypatch.setattr(connections, "CONNECTIONS_AT_MOST", MOST)
    lake = lithify.open(str(tmp_path / "lake"))
    lake.create_topic("orders", 1, config={"min.compaction.lag.ms": 3_600_000}).append([lithify.Record(b"k", b"v")])
    options = GatewayOptions("g1", HERE, kafka=KafkaAddresses(HERE))
    daemon = replace(open_gateway(lake, options, interval_ms=3_600_000, tell=told.append), warm=lambda: None)
    thread = Thread(target=daemon.run)
    thread.start()
    yield daemon
    daemon.stop.ask("the test ends")
    thread.join(30)
    assert not thread.is_alive()


def strange(address: tuple[str, int], number: int, hosts: int) -> socket.socket:
    """A stranger that says nothing, or half of a request."""
    one = socket.create_connection(address, 30, (f"127.0.0.{2 + number % hosts}", 0))
    if number % 2:
        one.sendall(HALF)
    return one


@pytest.mark.parametrize("hosts", [1, 8])
def test_others_are_served_while_strangers_connect(gateway, told, hosts):
    host, _, port = gateway.kafka.address.rpartition(":")
    address = host, int(port)
    asked = [{"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 2**20}]}]
    with ExitStack() as strangers, WireClient(address) as idle, WireClient(address) as steady:
        assert idle.ask(METADATA, 12, topics=[])["topics"] == []
        for number in range(STRANGERS):
            strangers.enter_context(strange(address, number, hosts))
            if number % 20 == 0:
                answer = steady.ask(FETCH, 12, max_wait_ms=0, min_bytes=1, topics=asked)
                assert answer["responses"][0]["partitions"][0]["error_code"] == 0
        with WireClient(address) as new:
            assert len(new.ask(METADATA, 12, topics=None)["topics"]) == 1
        assert requests.get(f"{gateway.url}/healthz", timeout=30).ok
        assert idle.ask(METADATA, 12, topics=[])["topics"] == []  # it was not closed for them
    (trouble,) = (one.facts["error"] for one in told if one.kind == "trouble")
    assert trouble.endswith(f"was closed: there were more than {MOST} connections, and it was idle")
