"""A broker that takes connections and says nothing, or next to nothing: every wait ends, and every stop is heard.

Before anything was said, in the middle of a stream, and while it is asked about topics; for ingest, publish
and the consumer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from pyspark.sql import SparkSession

import lithify
from lithify.errors import BrokerError
from lithify.kafka import SnapshotConsumer, publish
from lithify.model.record import Record
from lithify.reports.ingest import IngestBatch, IngestNote
from lithify.spark.kafka import kafka_cluster
from lithify.spark.kafka.kafka_stream import TopicStream
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import COPIED_S, SOON, KafkaCopy, alive, ingest_program
from support.kafka.lake import KafkaLake, kafka_lake
from support.processes.programs import PROGRAM
from support.servers.tcp_proxy import TcpProxy, wait_until

STOP_S = 10.0
TOPICS = 5
NOW = 1_700_000_000_000


@pytest.fixture
def proxy(behind: tuple[KafkaBroker, TcpProxy]) -> Iterator[TcpProxy]:
    _, proxy = behind
    yield proxy
    proxy.mend()
    proxy.drop()


@pytest.fixture
def topics(behind: tuple[KafkaBroker, TcpProxy]) -> list[str]:
    broker, _ = behind
    made = [broker.make_topic(1) for _ in range(TOPICS)]
    producer = broker.producer()
    for topic in made:
        for n in range(50):
            producer.produce(topic, key=b"%d" % n, value=b"v")
    assert producer.flush(30) == 0
    return made


def asked(proxy: TcpProxy) -> Callable[[], bool]:
    """Whether a request has come from now on."""
    heard: list[bytes] = []
    proxy.on_request = heard.append
    return lambda: bool(heard)


def stopped(process: subprocess.Popen[bytes], number: signal.Signals) -> float:
    """Seconds until a program that gets a signal has ended, with everything that it has started."""
    begun = time.monotonic()
    process.send_signal(number)
    process.wait(timeout=60)
    wait_until(lambda: not alive(process.pid), "something of it goes on")
    return time.monotonic() - begun


def test_an_ingest_that_asks_in_vain_is_stopped(tmp_path: Path, proxy: TcpProxy, topics: list[str]) -> None:
    """Answers come a byte at a time."""
    proxy.trickle_s = 0.4
    heard = asked(proxy)
    process = ingest_program(tmp_path, proxy, *(word for topic in topics for word in ("--topic", topic)))
    wait_until(heard, "it asks nothing", COPIED_S)
    time.sleep(1)
    assert process.poll() is None
    assert stopped(process, signal.SIGTERM) < STOP_S


def test_an_outage_is_told_and_its_end_and_a_stop_in_one_is_heard(
    tmp_path: Path, proxy: TcpProxy, topics: list[str]
) -> None:
    """With `--json` as objects on stderr: results have stdout for themselves. A stop in mid-stream loses nothing."""
    several = topics[:2]
    what = [word for topic in several for word in ("--topic", topic)]
    process = ingest_program(tmp_path, proxy, "--continuous", "--interval", "1s", *what)

    def told() -> list[str]:
        lines = (tmp_path / "err").read_text().splitlines()
        return [json.loads(line)["event"] for line in lines if line.startswith("{")]

    begun = ["asking", "starting_spark", "spark_started", *["settings", "begins", "waiting"] * len(several)]
    wait_until(lambda: sorted(told()) == sorted(begun), "it does not wait for records", COPIED_S)
    assert told()[:5] == begun[:5]
    proxy.silent = True
    wait_until(lambda: told()[len(begun) :] == ["outage"], "no outage is told", COPIED_S)
    proxy.mend()
    proxy.drop()
    wait_until(lambda: told()[len(begun) :] == ["outage", "recovered"], "its end is not told", COPIED_S)
    proxy.silent = True
    time.sleep(3)
    assert stopped(process, signal.SIGINT) < STOP_S
    results = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert all("records" in result for result in results)
    lake = lithify.open(str(tmp_path / "lake"))
    assert [len(list(lake.topic(topic).reader(0))) for topic in several] == [50, 50]


def test_many_topics_wait_no_longer_than_one(
    tmp_path: Path, proxy: TcpProxy, topics: list[str], session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in slices of a wait, between which the client asks whether to stop: a busy machine changes no count."""
    monkeypatch.setattr(kafka_cluster, "CALL_S", 4)
    proxy.silent = True
    slices = Counter[str]()

    def stops() -> bool:
        slices["waited"] += 1
        return False

    kafka = {**conf(proxy), "request.timeout.ms": "2000"}
    reports = lithify.open(str(tmp_path)).ingest(kafka, topics, spark=session, stops=stops)
    assert slices["waited"] < 2 * 4_000 / kafka_cluster.SLICE_MS
    assert [report.source for report in reports] == topics
    assert all(f"{proxy.address} does not report" in str(report.error) for report in reports)


def test_a_stop_in_the_middle_of_asking_is_no_error(
    tmp_path: Path, proxy: TcpProxy, topics: list[str], session: SparkSession
) -> None:
    proxy.silent = True
    heard = asked(proxy)
    begun = time.monotonic()
    reports = lithify.open(str(tmp_path)).ingest(
        {"bootstrap.servers": proxy.address}, topics, spark=session, stops=heard
    )
    assert time.monotonic() - begun < STOP_S
    assert reports == ()


def test_an_ingest_that_hears_nothing_more_waits_and_goes_on(
    behind: tuple[KafkaBroker, TcpProxy],
    tmp_path: Path,
    proxy: TcpProxy,
    topics: list[str],
    session: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until the stream has failed, and a new one has to begin; without `continuous` that is its end."""
    broker, _ = behind
    copy = KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, topics[0], {**SOON, **conf(proxy)})
    events: list[str] = []
    streams: list[TopicStream] = []
    records, start = 0, TopicStream.start

    def started(stream: TopicStream, *arguments: Any) -> None:
        streams.append(stream)
        start(stream, *arguments)

    monkeypatch.setattr(TopicStream, "start", started)

    def falls_silent(batch: IngestBatch) -> None:
        nonlocal records
        records += batch.records
        proxy.silent = records == 50

    def hears(note: IngestNote) -> None:
        events.append(note.event)
        if note.event == "outage":
            copy.produce(0, 1)
            wait_until(lambda: not streams[-1].is_active, "the stream does not fail", COPIED_S)
            proxy.mend()
            proxy.drop()

    report = copy.ingest(continuous=True, interval_ms=100, tell=falls_silent, notes=hears, stops=lambda: records == 51)
    assert (report.error, report.records) == (None, 51)
    assert events.index("begins") < events.index("outage") < events.index("recovered")
    assert "begins" in events[events.index("outage") :]
    copy.check_equal()


@pytest.fixture
def lake(behind: tuple[KafkaBroker, TcpProxy], tmp_path: Path) -> KafkaLake:
    broker, _ = behind
    made = kafka_lake(broker, tmp_path)
    made.produce([Record(b"%d" % n, b"v", NOW) for n in range(100)])
    made.take_in()
    made.compact()
    return made


def conf(proxy: TcpProxy) -> dict[str, str]:
    return {"bootstrap.servers": proxy.address}


@dataclass(slots=True)
class Interrupt:
    """Ctrl-C, a second after it is asked for."""

    came_s: float = 0.0

    def soon(self) -> None:
        Timer(1, self._come).start()

    def _come(self) -> None:
        self.came_s = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)


@contextmanager
def interrupted() -> Iterator[Interrupt]:
    """Something that an interrupt ends, before long."""
    interrupt = Interrupt()
    with pytest.raises(KeyboardInterrupt):
        yield interrupt
    assert time.monotonic() - interrupt.came_s < STOP_S


def test_publish_names_a_silent_broker_and_hears_an_interrupt(
    proxy: TcpProxy, lake: KafkaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is asked first, and between two transactions."""
    proxy.silent = True
    with interrupted() as interrupt:
        interrupt.soon()
        publish(lake.topic, conf(proxy), "never")
    begun = time.monotonic()
    with pytest.raises(BrokerError, match=proxy.address):
        publish(lake.topic, conf(proxy), "never", timeout_s=3)
    assert time.monotonic() - begun < 5 * 3

    proxy.mend()
    proxy.drop()
    monkeypatch.setattr("lithify.kafka.publisher.session.TRANSACTION_RECORDS", 30)

    def falls_silent(_records: int) -> None:
        proxy.silent = True
        interrupt.soon()

    to = lake.broker.make_topic(1, cleanup_policy="compact")
    with interrupted() as interrupt:
        publish(lake.topic, conf(proxy), to, tell=falls_silent)
    proxy.mend()
    proxy.drop()
    report = publish(lake.topic, conf(proxy), to)
    assert (report.resumed, report.records) == (True, 70)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_program_that_publishes_is_stopped(
    tmp_path: Path, proxy: TcpProxy, lake: KafkaLake, number: signal.Signals
) -> None:
    proxy.silent = True
    heard = asked(proxy)
    command = ["--warehouse", str(tmp_path / "lake"), "kafka", "publish", lake.name, "--to", "never"]
    process = subprocess.Popen(
        [*PROGRAM, *command, "--bootstrap-servers", proxy.address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(heard, "it asks nothing", COPIED_S)
    time.sleep(1)
    assert stopped(process, number) < STOP_S


def test_a_table_is_not_filled_for_ever(proxy: TcpProxy, lake: KafkaLake) -> None:
    """Silent from the first question on, and when the lake has been read and Kafka has more."""
    proxy.silent = True
    begun = time.monotonic()
    with pytest.raises(BrokerError, match=proxy.address):
        SnapshotConsumer(lake.topic, conf(proxy), kafka_topic=lake.name, timeout_s=3)
    assert time.monotonic() - begun < 5 * 3

    proxy.mend()
    proxy.drop()
    table: dict[bytes, Record] = {}
    with SnapshotConsumer(lake.topic, conf(proxy), kafka_topic=lake.name, timeout_s=3) as consumer:
        consumer.fill(table)
        assert len(table) == 100
        lake.produce([Record(b"new", b"v", NOW)])
        proxy.silent = True
        begun = time.monotonic()
        with pytest.raises(BrokerError, match=proxy.address):
            consumer.fill(table)
        assert time.monotonic() - begun < 5 * 3
        with interrupted() as interrupt:
            interrupt.soon()
            consumer.fill(table)
        proxy.mend()
        proxy.drop()
        while not table.get(b"new"):
            consumer.fill(table)
