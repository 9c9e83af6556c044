"""Looks of a gateway: cleaner, page and Kafka's clients read each version once; it is ready after the first (C50)."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from threading import Event, Thread

import pytest
import requests

import lithify
from gateway.standing.gateways import waited
from lithify import Record
from lithify.errors import WarehouseError
from lithify.gateway.listening.listen import ListenAddress
from lithify.gateway.process.opened import open_gateway
from lithify.gateway.process.options import GatewayOptions, KafkaAddresses
from lithify.gateway.server.live.watched import WAITING, Watched
from support.kafka.wire import WireClient

TOPICS = 5
HERE = ListenAddress("127.0.0.1", 0)
LIST_OFFSETS, METADATA = 2, 3


@pytest.fixture
def lake(tmp_path):
    lake = lithify.open(str(tmp_path / "lake"))
    for number in range(TOPICS):
        config = {"min.compaction.lag.ms": 3_600_000}  # nothing is due: there is no Spark
        lake.create_topic(f"orders{number}", config=config).append([Record(b"k", b"v")])
    return lake


@pytest.fixture
def loads(lake, monkeypatch):
    """How often each topic was loaded by a look."""
    counted, store = Counter(), type(lake.warehouse.store)
    real = store.load_at

    def load_at(self, name, token):
        counted[str(name)] += 1
        return real(self, name, token)

    monkeypatch.setattr(store, "load_at", load_at)
    return counted


@pytest.fixture
def gateway(lake):
    """The daemon of a gateway, without Spark."""
    daemon = replace(
        open_gateway(lake, GatewayOptions("g1", HERE, kafka=KafkaAddresses(HERE)), interval_ms=200),
        warm=lambda: None,
    )
    thread = Thread(target=daemon.run)
    yield daemon, thread
    daemon.stop.ask("the test ends")
    if thread.ident is not None:
        thread.join(30)
        assert not thread.is_alive()


def test_each_version_of_a_topic_is_read_once(lake, gateway, loads):
    daemon, thread = gateway
    thread.start()
    waited(lambda: requests.get(f"{daemon.url}/readyz", timeout=30).ok)
    waited(lambda: daemon.loop.figures().looked_ms is not None)
    assert len(requests.get(f"{daemon.url}/api/v1/status", timeout=30).json()["topics"]) == TOPICS
    host, _, port = daemon.kafka.address.rpartition(":")
    with WireClient((host, int(port))) as client:
        assert len(client.ask(METADATA, 12, topics=None)["topics"]) == TOPICS
        assert loads == {f"orders{number}": 1 for number in range(TOPICS)}
        for end in (2, 3, 4):
            lake.topic("orders0").append([Record(b"k", b"v")])
            loads.clear()
            await_looks(daemon, client, end)
            assert loads == {"orders0": 1}


def await_looks(daemon, client, end: int) -> None:
    """Until all have seen that log end."""
    waited(lambda: end_of_orders(client) == end)
    assert requests.get(f"{daemon.url}/api/v1/status", timeout=30).ok
    looked_ms = daemon.loop.figures().looked_ms
    waited(lambda: daemon.loop.figures().looked_ms > looked_ms + 400)


def end_of_orders(client) -> int:
    """As Kafka's clients see it."""
    asked = [{"name": "orders0", "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    return client.ask(LIST_OFFSETS, 7, topics=asked)["topics"][0]["partitions"][0]["offset"]


def hanging(lake, monkeypatch):
    """Reads of topics wait for the second of these events; the first one says that one of them does."""
    reads, may_read, store = Event(), Event(), type(lake.warehouse.store)
    real = store.load_at

    def load_at(self, name, token):
        reads.set()
        assert may_read.wait(60)
        return real(self, name, token)

    monkeypatch.setattr(store, "load_at", load_at)
    return reads, may_read


def test_while_a_read_hangs_many_who_wait_for_it_leave_threads_to_others(lake, gateway, monkeypatch):
    daemon, _ = gateway
    _reads, may_read = hanging(lake, monkeypatch)
    daemon.serving.start()
    ask = partial(requests.get, timeout=60)
    with ThreadPoolExecutor(60) as pool:
        waiting = [pool.submit(ask, f"{daemon.url}/api/v1/status") for _ in range(60)]
        refused = next(as_completed(waiting)).result()
        waited(lambda: sum(one.done() for one in waiting) == 60 - WAITING)
        try:
            assert requests.get(f"{daemon.url}/readyz", timeout=20).status_code == 503
            assert requests.get(f"{daemon.url}/api/v1/topics/orders1", timeout=20).ok
        finally:
            may_read.set()
        codes = Counter(one.result().status_code for one in waiting)
    assert codes == {200: WAITING, 503: 60 - WAITING}
    assert refused.json()["code"] == "Busy"
    daemon.serving.close()
    daemon.kafka.close()


def test_an_error_that_others_find_is_told_to_probes_and_to_all_who_waited(lake, monkeypatch):
    """A probe makes no look while another one runs, and there may always be one."""
    watched = Watched(lake)
    watched.overview()
    asks, may_fail, looks = Event(), Event(), []

    def away(self):
        looks.append(1)
        asks.set()
        assert may_fail.wait(30)
        raise WarehouseError("the catalog is away")

    monkeypatch.setattr(type(lake.warehouse.store), "change_tokens", away)
    with ThreadPoolExecutor(9) as pool:
        told = [pool.submit(watched.overview)]
        assert asks.wait(30)
        told += [pool.submit(watched.overview) for _ in range(8)]
        waited(lambda: WAITING - watched._waiting._value == 9)
        may_fail.set()
        assert {type(one.exception()) for one in told} == {WarehouseError}
    assert len(looks) == 2  # the first one's, and one for all those that came during it
    assert watched.has_looked and watched.error == "the catalog is away"


def test_it_is_not_ready_before_all_topics_were_read(lake, gateway, monkeypatch):
    daemon, _ = gateway
    reads, may_read = hanging(lake, monkeypatch)
    daemon.serving.start()
    first: list[int] = []
    probe = Thread(target=lambda: first.append(requests.get(f"{daemon.url}/readyz", timeout=30).status_code))
    probe.start()
    assert reads.wait(30)
    told = requests.get(f"{daemon.url}/readyz", timeout=30)
    answer = told.status_code, told.json()["status"], told.headers["Retry-After"]
    assert answer == (503, "all topics are being read for the first time", "5")
    may_read.set()
    probe.join(30)
    assert first == [200]
    daemon.serving.close()
    daemon.kafka.close()
