"""Brokers and bookies that are killed: by one test after the other, on the same cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

import lithify
from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.reports.pulsar.rounds import TopicRoundReport
from support.processes.programs import end
from support.pulsar.bookies import a_writer
from support.pulsar.clients import read, send
from support.pulsar.copies import PulsarCopy, ingest_program, wait_for_records
from support.pulsar.live_topics import a_round, compacted_values, look, produce, view, view_ledgers
from support.pulsar.server import PulsarServer, a_pulsar


@pytest.fixture(scope="module")
def cluster() -> Iterator[PulsarServer]:
    with a_pulsar() as cluster:
        yield cluster


@pytest.fixture
def server(cluster: PulsarServer) -> PulsarServer:
    if not cluster.is_running:
        cluster.start()  # after a test that failed in between
    return cluster


def test_messages_survive_the_kill_of_broker_and_zookeeper(server):
    topic = server.make_topic()
    send(server, topic, "a", "b")
    server.kill(broker_only=True)
    server.start()
    send(server, topic, "c")
    server.kill()
    server.start()
    assert read(server, topic, 3) == [b"a", b"b", b"c"]


def is_unknown(report: TopicRoundReport) -> bool:
    """Whether the broker died after it was asked to serve the view, and before it said that it does."""
    return [one.error_code for one in report.failed] == ["UnknownOutcome"]


@pytest.mark.parametrize("after_s", [0.2, 1.5, 4.0])
def test_a_broker_that_goes_away_fails_the_round_only(server, session, after_s):
    """C55: whatever the round was doing when the broker was killed."""
    topic = server.make_topic()
    produce(server, topic, 3, 200)
    assert a_round(server, topic, session).changed
    before = view(server, topic)
    produce(server, topic, 4, 200)
    whole = compacted_values(server, topic)
    timer = threading.Timer(after_s, lambda: server.kill(broker_only=True))
    timer.start()
    try:
        report = a_round(server, topic, session)
    except BrokerError:
        report = None
    timer.join()
    server.start()
    if report is None or (report.failed and not report.changed and not is_unknown(report)):
        assert view(server, topic) == before
    assert compacted_values(server, topic) == whole
    assert not a_round(server, topic, session).failed
    assert compacted_values(server, topic) == whole
    assert view_ledgers(server, topic) == [look(server, topic).view]


def test_a_broker_that_is_killed_is_waited_for(tmp_path, server, session):
    """C52: it is away for some seconds in the middle of an ingest."""
    topic = server.make_topic()
    copy = PulsarCopy(lithify.open(str(tmp_path / "lake")), server, session, topic)
    copy.produce(0, 50)
    process = ingest_program(tmp_path, server, topic, "--continuous", "--interval", "100ms")
    try:
        wait_for_records(tmp_path, process, 50)
        server.kill(broker_only=True)
        time.sleep(2)
        server.start()
        copy.produce(50, 90)
        wait_for_records(tmp_path, process, 40)
        process.terminate()
        assert process.wait(timeout=30) == 0
    finally:
        end(process)
        process.wait(timeout=30)
    copy.check_equal()


def test_bookies_that_go_away_fail_the_next_calls_in_bounded_time(server):
    """The last one here, as it leaves the cluster killed."""
    with a_writer(server, answer_s=3) as writer:
        ledger = writer.create("persistent://public/default/none", MessageId(7, 9), "run")
        server.kill(broker_only=True)
        with pytest.raises(BrokerError):
            for _ in range(100):
                writer.append([b"entry"])
            writer.close()
        writer.delete(ledger)  # for which the metadata store is enough
        assert writer.of("persistent://public/default/none", 0) == []
