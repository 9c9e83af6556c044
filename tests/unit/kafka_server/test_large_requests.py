"""Large requests and answers take threads of their own: other connections do not wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from threading import Event, current_thread
from typing import Any

import pytest

from lithify.kafka_server.requests import dispatch
from lithify.kafka_server.requests.cluster import Alone
from lithify.kafka_server.requests.dispatch import LARGE_BYTES, LARGE_ROWS, has_many_rows
from lithify.testing import memory_lake
from support.kafka.served import ServedLake, serving_kafka

FETCH, METADATA, FIND_COORDINATOR, LOOP = 1, 3, 10, "kafka"
MANY = [{"name": f"unknown{number:05}"} for number in range(LARGE_BYTES // 10)]


@pytest.fixture
def served() -> Iterator[ServedLake]:
    lake = memory_lake()
    lake.create_topic("orders", LARGE_ROWS + 1)
    with serving_kafka(lake) as one:
        yield one


@pytest.fixture
def threads(monkeypatch) -> list[str]:
    """On which threads requests are read and answers written, in turns."""
    told: list[str] = []

    def noted(form: Any, *given: Any) -> Any:
        told.append(current_thread().name)
        return form(*given)

    for name in ("decode_request", "encode_response"):
        monkeypatch.setattr(dispatch, name, partial(noted, getattr(dispatch, name)))
    return told


def test_small_requests_are_read_on_the_loop(served, threads):
    with served.client() as client:
        client.ask(METADATA, 12, topics=MANY[:2])
    assert threads == [LOOP, LOOP]


def test_large_requests_and_their_answers_are_not(served, threads):
    with served.client() as client:
        assert len(client.ask(METADATA, 12, topics=MANY)["topics"]) == len(MANY)
    assert len(threads) == 2 and LOOP not in threads


def test_a_large_answer_to_a_small_request_is_not(served, threads):
    with served.client() as client:
        (topic,) = client.ask(METADATA, 12, topics=None)["topics"]
    assert len(topic["partitions"]) == LARGE_ROWS + 1
    assert threads[0] == LOOP != threads[1]


def test_others_are_answered_while_large_requests_are_read(served, monkeypatch):
    """As many as there are threads for them. Answers keep the order of one connection."""
    reads, goes_on, real = Event(), Event(), dispatch.decode_request

    def held(frame: bytes) -> Any:
        if len(frame) > LARGE_BYTES:
            reads.set()
            assert goes_on.wait(30)
        return real(frame)

    monkeypatch.setattr(dispatch, "decode_request", held)
    clients = [served.client() for _ in range(5)]
    for client in clients:
        client.send(METADATA, 12, topics=MANY)
        client.send(METADATA, 12, topics=[])
    assert reads.wait(30)
    with served.client() as other:
        assert other.ask(METADATA, 12, topics=[])["topics"] == []
        asked = [{"topic": "orders", "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}]}]
        assert other.ask(FETCH, 12, max_wait_ms=10, min_bytes=1, topics=asked)["responses"]
    goes_on.set()
    for client in clients:
        sizes = [len(client.receive(METADATA, 12, number)["topics"]) for number in (1, 2)]
        client.close()
        assert sizes == [len(MANY), 0]


def test_coordinators_of_many_groups_are_not_looked_for_on_the_loop(served, threads, monkeypatch):
    def noted(_cluster: Alone, _group: str) -> None:
        threads.append(current_thread().name)

    monkeypatch.setattr(Alone, "coordinator_of", noted)
    with served.client() as client:
        names = ["readers", "others", "readers"]
        told = client.ask(FIND_COORDINATOR, 4, coordinator_keys=names)["coordinators"]
    assert [one["key"] for one in told] == names[:2]
    assert len(threads) == 4 and threads.count(LOOP) == 2


@pytest.mark.parametrize(
    ("body", "is_so"),
    [
        ({"topics": [{}] * LARGE_ROWS}, False),
        ({"topics": [{}] * (LARGE_ROWS + 1)}, True),
        ({"topics": [{"partitions": [{}] * (LARGE_ROWS // 2)}] * 2}, True),
        ({"topics": [], "names": ["a"] * LARGE_ROWS, "code": 0}, False),
    ],
)
def test_rows_are_counted_at_all_depths(body, is_so):
    assert has_many_rows(body) is is_so
