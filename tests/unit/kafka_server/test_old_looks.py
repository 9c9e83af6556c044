"""Requests that come when the last look is old: files were swept since, or another gateway knows more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import lithify
from lithify.api.lake import Lake
from lithify.model.names import parse_topic
from lithify.testing import memory_lake
from lithify.testing.fake_clock import FakeClock
from support.kafka.served import serving_kafka
from support.kafka.served_batches import headers_in
from support.kafka.wire import WireClient

FETCH, LIST_OFFSETS, METADATA, EPOCHS = 1, 2, 3, 23
TOPICS = tuple(f"orders{number}" for number in range(20))
LATER = 10**6


@dataclass
class Old:
    """A gateway that has had one look, and reads no more unless it has to; a client of it."""

    lake: Lake
    client: WireClient
    looks: list[None] = field(default_factory=list)

    def sweep(self) -> None:
        """A round, and then the files that only earlier versions name are gone."""
        before = self.paths()
        self.lake.topic(TOPICS[0]).compact()
        self.remove(before - self.paths())

    def paths(self) -> set[str]:
        """Where the records of the first topic are now."""
        store = self.lake.warehouse.store
        return {segment.path for segment in store.segments(store.load(parse_topic(TOPICS[0]).name))}

    def remove(self, paths: set[str]) -> None:
        for path in paths:
            del self.lake.warehouse.files.data[path]  # type: ignore[attr-defined]

    def ask(self, api: int, version: int, names: tuple[str, ...] = TOPICS[:1], **asked: Any) -> list[dict[str, Any]]:
        """The first partition of each topic in the answer."""
        topics = [{"name": name, "topic": name, "partitions": [asked]} for name in names]
        more = {"max_wait_ms": 0, "min_bytes": 1} if api == FETCH else {}
        answer = self.client.ask(api, version, topics=topics, **more)
        return [one["partitions"][0] for one in answer["responses" if api == FETCH else "topics"]]


@pytest.fixture
def old(monkeypatch) -> Iterator[Old]:
    lake = memory_lake(FakeClock(10_000))
    for name in TOPICS:
        topic = lake.create_topic(name, 1, config={"delete.retention.ms": 0})
        topic.append([lithify.Record(b"a", b"v", timestamp=t, partition=0) for t in (1, 2)])
    store = lake.warehouse.store
    change_tokens = store.change_tokens
    with serving_kafka(lake) as served, served.client() as client:
        client.ask(METADATA, 12, topics=None)
        one = Old(lake, client)
        monkeypatch.setattr(type(store), "change_tokens", lambda _store: (one.looks.append(None), change_tokens())[1])
        yield one


def test_records_are_fetched_from_the_newest_version(old: Old) -> None:
    old.sweep()
    (told,) = old.ask(FETCH, 12, partition=0, fetch_offset=0, partition_max_bytes=2**20)
    assert told["error_code"] == 0
    assert [(one.last_offset, one.records) for one in headers_in([memoryview(told["records"])])] == [(1, 1)]


@pytest.mark.parametrize(("timestamp", "found"), [(2, (1, 2)), (0, (1, 2)), (-3, (1, 2)), (-1, (2, -1))])
def test_offsets_by_time_are_those_of_the_newest_version(old: Old, timestamp: int, found: tuple[int, int]) -> None:
    old.sweep()
    (told,) = old.ask(LIST_OFFSETS, 10, partition_index=0, timestamp=timestamp)
    assert (told["error_code"], told["offset"], told["timestamp"]) == (0, *found)


def test_the_end_of_an_epoch_is_told_without_files(old: Old) -> None:
    old.sweep()
    (told,) = old.ask(EPOCHS, 4, partition=0, current_leader_epoch=0, leader_epoch=0)
    assert (told["error_code"], told["end_offset"]) == (0, 2)


def test_files_that_are_damaged_are_told_as_damage(old: Old) -> None:
    old.remove(old.paths())
    (fetched,) = old.ask(FETCH, 12, partition=0, fetch_offset=0, partition_max_bytes=2**20)
    (listed,) = old.ask(LIST_OFFSETS, 10, partition_index=0, timestamp=1)
    assert (fetched["error_code"], listed["error_code"]) == (56, 56)


@pytest.mark.parametrize(
    ("api", "version", "asked"),
    [
        (FETCH, 12, {"partition": 0, "fetch_offset": LATER, "partition_max_bytes": 1}),
        (FETCH, 12, {"partition": 0, "current_leader_epoch": LATER, "fetch_offset": 0, "partition_max_bytes": 1}),
        (LIST_OFFSETS, 10, {"partition_index": 0, "current_leader_epoch": LATER, "timestamp": -1}),
        (EPOCHS, 4, {"partition": 0, "current_leader_epoch": LATER, "leader_epoch": 0}),
    ],
)
def test_one_look_serves_a_request_of_many_topics(old: Old, api: int, version: int, asked: dict[str, Any]) -> None:
    told = old.ask(api, version, TOPICS, **asked)
    assert {one["error_code"] for one in told} <= {1, 75} and len(told) == len(TOPICS)
    assert len(old.looks) == 1
