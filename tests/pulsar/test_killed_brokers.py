"""Brokers and bookies that are killed: by one test after the other, on the same cluster."""

from __future__ import annotations

import threading
import time

import pytest

import lithify
from lithify.errors import BrokerError
from lithify.model.message import MessageId
from lithify.reports.pulsar.rounds import TopicRoundReport
from support.processes.programs import end
from support.pulsar.bookies import a_writer
from support.pulsar.copies import PulsarCopy, ingest_program, wait_for_records
from support.pulsar.live_topics import a_round, compacted_values, look, produce, view, view_ledgers


def is_unknown(report: TopicRoundReport) -> bool:
    """Whether the broker died after it was asked to serve the view, and before it said that it does."""
    return [one.error_code for one in report.failed] == ["UnknownOutcome"]


@pytest.mark.parametrize("after_s", [0.2, 1.5])
def test_a_broker_that_goes_away_fails_the_round_only(mortal_server, session, after_s):
    """C55: whatever the round was doing when the broker was killed."""
    topic = mortal_server.make_topic()
    produce(mortal_server, topic, 3, 200)
    assert a_round(mortal_server, topic, session).changed
    before = view(mortal_server, topic)
    produce(mortal_server, topic, 4, 200)
    whole = compacted_values(mortal_server, topic)
    timer = threading.Timer(after_s, lambda: mortal_server.kill(broker_only=True))
    timer.start()
    try:
        report = a_round(mortal_server, topic, session)
    except BrokerError:
        report = None
    timer.join()
    mortal_server.start()
    if report is None or (report.failed and not report.changed and not is_unknown(report)):
        assert view(mortal_server, topic) == before
    assert compacted_values(mortal_server, topic) == whole
    assert not a_round(mortal_server, topic, session).failed
    assert compacted_values(mortal_server, topic) == whole
    assert view_ledgers(mortal_server, topic) == [look(mortal_server, topic).view]


def test_a_broker_that_is_killed_is_waited_for(tmp_path, mortal_server, session):
    """C52: it is away for some seconds in the middle of an ingest."""
    topic = mortal_server.make_topic()
    copy = PulsarCopy(lithify.open(str(tmp_path / "lake")), mortal_server, session, topic)
    copy.produce(0, 50)
    process = ingest_program(tmp_path, mortal_server, topic, "--continuous", "--interval", "100ms")
    try:
        wait_for_records(tmp_path, process, 50)
        mortal_server.kill(broker_only=True)
        time.sleep(2)
        mortal_server.start()
        copy.produce(50, 90)
        wait_for_records(tmp_path, process, 40)
        process.terminate()
        assert process.wait(timeout=30) == 0
    finally:
        end(process)
        process.wait(timeout=30)
    copy.check_equal()


def test_bookies_that_go_away_fail_the_next_calls_in_bounded_time(mortal_server):
    with a_writer(mortal_server, answer_s=3) as writer:
        ledger = writer.create("persistent://public/default/none", MessageId(7, 9), "run")
        mortal_server.kill(broker_only=True)
        with pytest.raises(BrokerError):
            for _ in range(100):
                writer.append([b"entry"])
            writer.close()
        writer.delete(ledger)  # for which the metadata store is enough
        assert writer.of("persistent://public/default/none", 0) == []
