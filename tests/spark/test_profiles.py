"""What tasks of a round tell of themselves: each once, with what the round counts, and only when asked."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from random import Random

import pytest

from lithify.api.profiles import RoundProfile
from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings
from lithify.ports.engine import RunLimits
from lithify.ports.profile import Gauges
from lithify.rules.compaction.key_pass_shape import KeyPassShape
from support.topics.stored_topics import StoredTopic

GAUGES = Gauges(time.time, time.process_time)


@pytest.fixture
def profile():
    return RoundProfile()


@pytest.fixture
def profiled(engine, profile):
    return replace(engine, workers=replace(engine.workers, gauges=GAUGES), profile=profile)


@pytest.fixture
def two_logs(tmp_path):
    """Their first segments get masks, the second ones are rewritten."""
    topic, random = StoredTopic(tmp_path, TopicSettings(segment_bytes=4000, segment_max_dead_ratio=0.8)), Random(1)
    for partition in (0, 1):
        topic.append(partition, [Record(b"k%d" % n, random.randbytes(30)) for n in range(100)])
        topic.append(partition, [Record(b"k%d" % (n % 10), random.randbytes(30)) for n in range(100)])
    return topic


def told(profile, kind):
    return [(log, spent) for log, spent in profile.tasks if spent.kind == kind]


def test_each_task_tells_what_it_read_wrote_and_took(profiled, profile, two_logs):
    begun_s = time.time()
    outcomes = two_logs.round(profiled)
    assert {spent.kind for _, spent in profile.tasks} == {"range", "rewrite", "mask"}
    for partition, outcome in outcomes.items():
        mine = [spent for log, spent in profile.tasks if log.partition == partition]
        ranges = [spent for spent in mine if spent.kind == "range"]
        written = [spent for spent in mine if spent.kind != "range"]
        assert [spent.records for spent in ranges] == [200]
        assert sum(spent.bytes_read for spent in ranges) == outcome.findings.bytes_read
        assert sum(spent.bytes_read for spent in mine) == outcome.bytes_read
        assert sum(spent.records for spent in written if spent.kind == "mask") == 10
        assert sum(spent.records for spent in written if spent.kind == "rewrite") == 10
        assert all(spent.bytes_written > 0 for spent in written)
        assert all(spent.wall_s > 0 <= spent.cpu_s and spent.peak_bytes > 2**20 for spent in mine)
        assert all(begun_s <= spent.began_s <= time.time() and spent.throttled_s == 0 for spent in mine)
        assert {spent.worker.rpartition(":")[2] for spent in mine}.isdisjoint({str(os.getpid())})


def test_tasks_that_send_keys_tell_it_too(profiled, profile, two_logs, monkeypatch):
    forced = KeyPassShape(3, shuffled=True)
    monkeypatch.setattr("lithify.spark.engine.key_pass_shapes", lambda plans, *_, **__: [forced] * len(plans))
    outcomes = two_logs.round(profiled)
    assert sorted(spent.part for _, spent in told(profile, "send")) == [0, 1, 2, 3]
    assert sorted((log.partition, spent.part) for log, spent in told(profile, "find")) == [
        (partition, part) for partition in (0, 1) for part in range(3)
    ]
    for kind in ("send", "find"):
        assert sum(spent.records for _, spent in told(profile, kind)) == 400
    read = sum(spent.bytes_read for _, spent in told(profile, "send"))
    assert read == sum(outcome.findings.bytes_read for outcome in outcomes.values())


@pytest.mark.parametrize("one_machine", [True, False])
def test_on_one_machine_one_task_reads_keys_that_two_would(profiled, profile, tmp_path, monkeypatch, one_machine):
    monkeypatch.setattr("lithify.rules.compaction.key_pass_shape.LEAST_RECORDS", 100)
    topic = StoredTopic(tmp_path)
    topic.append(0, [Record(b"k%d" % (n % 50), b"v") for n in range(200)])
    topic.round(replace(profiled, workers=replace(profiled.workers, one_machine=one_machine)))
    assert len(told(profile, "range")) == (1 if one_machine else 2)


def test_waits_for_a_rate_are_told(profiled, profile, two_logs):
    scanned = sum(s.scan_bytes for segments in two_logs.segments for s in segments)
    two_logs.round(profiled, limits=RunLimits(read_rate_bytes=scanned))
    assert all(0 < spent.throttled_s <= spent.wall_s for _, spent in profile.tasks if spent.kind != "mask")


def test_nothing_is_told_unasked(engine, profile, two_logs):
    two_logs.round(replace(engine, profile=profile))
    assert profile.tasks == []
