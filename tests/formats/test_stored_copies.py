"""Stored copies of Pulsar topics with chunks and encrypted batches are read, and their rounds go on (C53)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import lithify
from formats.make_copies import appended
from formats.make_warehouse import HERE, reading
from formats.test_stored_warehouses import known
from lithify.service.round.compact import RunRequest, compact
from lithify.testing.oracle_engine import OracleEngine
from support.pulsar.entries import Sent, single


@pytest.fixture(params=["unmarked-chunks", "marked-chunks"])
def told(request: pytest.FixtureRequest) -> Path:
    return HERE / f"{request.param}.json"


@pytest.fixture
def lake(told: Path, as_stored: Callable[[Path], Path]) -> lithify.Lake:
    return lithify.open(str(as_stored(told.with_suffix(".zip"))))


def rounds(lake: lithify.Lake, topic: lithify.Topic, now_ms: int) -> int:
    """Rounds until one changes nothing; how many did."""
    done = 0
    while True:
        request = RunRequest(now_ms=now_ms)
        report = compact(lake.warehouse, OracleEngine(lake.warehouse.files), topic.topic_name, request)
        assert not report.failed
        if not report.changed:
            return done
        done += 1


def deletes(topic: lithify.Topic, partition: int) -> list[bytes | None]:
    return [record.key for record in topic.reader(partition, compacted=True) if record.value == b""]


def test_everything_is_read_as_it_was_when_it_was_written(told, lake):
    expected = json.loads(told.read_text("utf-8"))
    found = json.loads(json.dumps(reading(lake, expected["now_ms"])))
    assert known(found, expected) == expected


def test_a_chunk_holds_its_own_delete_once_its_segment_is_rewritten(told, lake):
    """Until then it counts as an encrypted batch where it is not marked; an encrypted batch holds all of them."""
    now_ms = json.loads(told.read_text("utf-8"))["now_ms"]
    for topic in lake.topics():
        marked = told.stem == "marked-chunks"
        log = topic.status(now_ms=now_ms).logs[0]
        assert (log.chunks, log.passed_through) == ((1, 0) if marked else (0, 1))
        appended(topic, 0, single(4, 0, Sent("c", b"2")))  # one of the chunk's segment loses
        rounds(lake, topic, now_ms)
        log, other = topic.status(now_ms=now_ms).logs
        assert (log.chunks, log.passed_through, deletes(topic, 0)) == (1, 0, [b"a"])
        assert (other.chunks, other.passed_through, deletes(topic, 1)) == (0, 1, [b"a", b"b"])


def test_what_they_held_goes_with_them(told, lake):
    now_ms = json.loads(told.read_text("utf-8"))["now_ms"]
    for topic in lake.topics():
        for partition in (0, 1):
            topic.delete_records(partition, 1)
        assert all(log.due for log in topic.status(now_ms=now_ms).logs)
        assert rounds(lake, topic, now_ms) == 2
        assert [deletes(topic, partition) for partition in (0, 1)] == [[], []]
        assert not any(log.due for log in topic.status(now_ms=now_ms).logs)
        rows = [(row["partition"], row["key"], row["value"]) for row in topic.table().to_pylist()]
        assert sorted(rows) == [(p, key, value) for p in (0, 1) for key, value in ((b"c", b"1"), (b"d", b"2"))]
