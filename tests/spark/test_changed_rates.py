"""Rates that change while a round goes on, and those from before it, on a real session (C40).

A round at one byte a second would take years: that it ends says that the document was followed.
"""

from __future__ import annotations

from random import Random

import pytest

import lithify
from lithify.model.record import Record


@pytest.fixture
def topic(tmp_path):
    random = Random(7)
    topic = lithify.open(str(tmp_path)).create_topic("orders")
    for _ in range(3):
        topic.append([Record(b"%d" % random.randrange(50), random.randbytes(500)) for _ in range(200)])
    return topic


class Raising:
    """Progress of a round that lifts its rates when a phase has gone on for some time."""

    def __init__(self, topic, phase):
        self.topic = topic
        self.phase = phase
        self.heard = 0

    def __call__(self, phase, done, total):
        if phase == self.phase:
            self.heard += 1
            if self.heard == 10:
                assert done < total  # it waits
                self.topic.throttle()


@pytest.mark.parametrize(("rate", "phase"), [("read_rate", "key_pass"), ("write_rate", "rewrite")])
def test_a_round_that_waits_goes_on_when_its_rate_is_raised(topic, session, rate, phase):
    raising = Raising(topic, phase)
    report = topic.compact(spark=session, progress=raising, **{rate: 1})
    assert raising.heard >= 10
    (log,) = report.logs
    assert log.error is None
    assert log.records_out == log.keys == 50


def test_what_was_said_before_a_round_does_not_slow_it(topic, session):
    topic.throttle(read_rate=1, write_rate=1)
    assert topic.compact(spark=session).logs[0].records_out == 50
