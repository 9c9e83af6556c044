"""The producers, ledgers and followers of `just soak-gateways`, on two gateways of a small lake and without Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from threading import Event, Thread

import pytest

import lithify
from lithify.api.lake import Lake
from lithify.model.record import Record
from lithify.model.settings.topic_settings import changed
from lithify.service.round.compact import RunRequest, compact
from lithify.testing.oracle_engine import OracleEngine
from soak.checks import check_all
from soak.feeder import Counts
from soak.gateways.asking import Gateways
from soak.gateways.fed import HttpTopic
from soak.gateways.ledger import PARTITIONS, Append, Ledger
from soak.gateways.producers import Consumer, Producer
from soak.gateways.reading import HttpReader
from soak.topics import DAY_MS, Sizes
from support.servers.gateways import serving_gateway

APPENDS = 25
SIZES = Sizes(versions_retention_ms=DAY_MS, sweep_grace_ms=DAY_MS)


@pytest.fixture
def lake(tmp_path) -> Lake:
    return lithify.open(str(tmp_path))


@pytest.fixture
def gateways(lake: Lake, tmp_path) -> Iterator[Gateways]:
    with serving_gateway(lake) as first, serving_gateway(lithify.open(str(tmp_path))) as second:
        yield Gateways({"g1": first, "g2": second})


@pytest.fixture
def ledger(lake: Lake) -> Ledger:
    topic = lake.create_topic("shop/ledger", PARTITIONS)
    return Ledger(topic.name, {})


def compacted(lake: Lake, topic: str) -> None:
    compact(lake.warehouse, OracleEngine(lake.warehouse.files), lake.topic(topic).topic_name, RunRequest())


def test_producers_that_send_again_and_twice_find_each_append_once(lake: Lake, gateways: Gateways, ledger: Ledger):
    stop = Event()
    producers = [Producer(f"p{n}", [ledger], gateways, Random(n), 1_000.0, stop) for n in range(3)]
    readers = [HttpReader(gateways, ledger.topic, p, "earliest", Random(p)) for p in range(PARTITIONS)]
    consumers = [Consumer(ledger, reader, stop) for reader in readers]
    threads = [Thread(target=one.run) for one in producers]
    for thread in threads:
        thread.start()
    while len(ledger.appends) < APPENDS and any(thread.is_alive() for thread in threads):
        time.sleep(0.05)
    stop.set()
    for thread in threads:
        thread.join()
    for consumer in consumers:
        consumer.finish()
    compacted(lake, ledger.topic)
    said = [finding for one in (*producers, *consumers) for finding in one.findings]
    assert said + gateways.findings + list(ledger.compared(lake.topic(ledger.topic).reader())) == []
    assert sum(append.answer is not None for append in ledger.appends) > APPENDS // 2


def test_what_is_lost_or_there_twice_is_found(lake: Lake, gateways: Gateways, ledger: Ledger):
    topic, luck = lake.topic(ledger.topic), Random(1)
    append = ledger.begun("p0-1", luck)
    ledger.answered(append, gateways.append(ledger.topic, append.records, append.key, luck))
    assert list(ledger.compared(topic.reader())) == []
    found = list(topic.reader())
    own = next(record for record in found if record.key and record.key.startswith(b"p0"))
    assert "[], not" in " ".join(ledger.compared(record for record in found if record is not own))
    shared = next(record for record in reversed(found) if record is not own and record.key != own.key)
    assert list(ledger.compared([*found, shared._replace(offset=10_000)]))
    half = Append("p0-2", [Record(b"p0-2-%d" % n, b"p0-2-%d" % n, partition=0) for n in range(2)])
    ledger.appends.append(half)
    assert list(ledger.compared(found)) == []
    assert "in part" in " ".join(ledger.compared([*found, half.records[0]._replace(offset=10_000)]))
    topic.append(list(append.records))
    assert "2 times" in " ".join(ledger.compared(topic.reader()))


def test_another_answer_to_the_same_append_is_found(ledger: Ledger):
    append = ledger.begun("p0-1", Random(1))
    records = {p: sum(record.partition == p for record in append.records) for p in range(PARTITIONS)}
    ranges = [{"partition": p, "start_offset": 0, "end_offset": n, "records": n} for p, n in records.items()]
    ledger.answered(append, {"records": len(append.records), "ranges": ranges})
    assert ledger.findings == []
    ledger.answered(append, {"records": len(append.records), "ranges": ranges[:1]})
    assert len(ledger.findings) == 1


@pytest.mark.parametrize("seed", range(2))
def test_a_topic_that_is_fed_over_http_is_as_its_journal_says(lake: Lake, gateways: Gateways, seed: int):
    counts = Counts()
    fed = HttpTopic(lake, "soak/topic", Random(seed), SIZES, counts, gateways=gateways, chance=Random(seed))
    fed.create()
    fed.followers = [*fed.followers, *fed.over_http()]
    for _ in range(10):
        fed.turn()
    fed.release_all()
    at_once = {"delete.retention.ms": 0}  # which may have been altered
    fed.topic.alter(at_once)
    fed.journal.settings = changed(fed.journal.settings, at_once)
    compacted(lake, fed.name)
    findings, _, compared = check_all([fed])
    assert (findings, counts.findings, gateways.findings) == ([], [], [])
    assert compared > 0
