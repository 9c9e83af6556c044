"""Cleaners as processes, with Spark: ended, killed, frozen, several at once (C6, C31, C44)."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import lithify
from lithify.api.topic import Topic
from lithify.api.wiring import coordination_of
from lithify.service.documents import failures_of
from support.processes.cleaner_process import WAIT_S, CleanerProcess
from support.topics.whole_logs import check_whole, compacted, contents

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.timeout(600)]

STOPS_WITHIN_S = 10
LEASE_S = 4
VALUE_BYTES = 400


def made(folder: Path, name: str, *, records: int = 4_000, **config: object) -> Topic:
    topic = lithify.open(str(folder)).create_topic(name, config={k.replace("_", "."): v for k, v in config.items()})
    fed(topic, records)
    return topic


def fed(topic: Topic, records: int) -> None:
    topic.append([lithify.Record(key=b"%d" % (n % 1_000), value=os.urandom(VALUE_BYTES)) for n in range(records)])


def is_compacted(topic: Topic) -> bool:
    return contents(topic.warehouse, topic.topic_name) == compacted(topic.warehouse, topic.topic_name)


def running(folder: Path, *more: str, **flags: str) -> CleanerProcess:
    given = {"interval": "500ms", "lease": f"{LEASE_S}s", **flags}
    return CleanerProcess(
        "--warehouse", str(folder), *(f"--{name.replace('_', '-')}={value}" for name, value in given.items()), *more
    )


def in_its_round(cleaner: CleanerProcess, topic: Topic) -> None:
    """Waits until the cleaner has begun to write."""
    cleaner.wait_for_kind("looked")
    folder = Path(topic.info().location.removeprefix("file://"))
    before = len(list(folder.rglob("*.parquet")))
    ends = time.monotonic() + WAIT_S
    while time.monotonic() < ends:
        if len(list(folder.rglob("*.parquet"))) > before:
            return
        time.sleep(0.1)
    raise AssertionError(f"it has written nothing: {cleaner.events[-3:]} {cleaner.said}")


@pytest.mark.parametrize("whom", ["the cleaner", "all of its processes"])
def test_sigterm_in_a_round_ends_it_in_time_and_changes_nothing(tmp_path: Path, whom: str) -> None:
    topic = made(tmp_path, "orders")
    before = contents(topic.warehouse, topic.topic_name)
    with running(tmp_path, write_rate="20KB/s", id="alpha") as cleaner:
        in_its_round(cleaner, topic)
        with running(tmp_path, id="alpha") as second:
            assert second.ended() == 2
            assert "another cleaner with the id alpha is running" in second.said
        begun = time.monotonic()
        (cleaner.signal if whom == "the cleaner" else cleaner.signal_all)(signal.SIGTERM)
        assert cleaner.ended() == 0
        assert time.monotonic() - begun < STOPS_WITHIN_S
        ended = [event["event"] for event in cleaner.events if event["event"] != "looked"]
        assert ended[-2:] == ["abandoned", "stopped"], str(cleaner.events[-4:])
        assert cleaner.told("failed") == []
        if whom == "the cleaner":  # PySpark itself prints that its JVM has gone
            assert cleaner.said == ""
    assert contents(topic.warehouse, topic.topic_name) == before
    assert failures_of(topic.warehouse.store, topic.state()) == {}
    if whom == "the cleaner":  # whose id is free again, and whose work is done by the next one
        topics = [topic, *(made(tmp_path, f"t{number}", records=50) for number in range(4))]
        with running(tmp_path, "--once", "--threads=2", id="alpha") as cleaner:
            assert cleaner.ended() == 0
            assert sorted(event["topic"] for event in cleaner.told("round")) == [topic.name for topic in topics]
        assert all(is_compacted(topic) for topic in topics)


def at_work(topics: list[Topic], cleaner_id: str) -> None:
    """Feeds topics until a cleaner has the lease of one: it is in the middle of its rounds then."""
    leases = coordination_of(topics[0].warehouse, None)
    ends = time.monotonic() + WAIT_S
    while time.monotonic() < ends:
        for topic in topics:
            if any(lease.owner.startswith(f"{cleaner_id}/") and ":" not in lease.name for lease in leases.leases()):
                return
            fed(topic, 20)
    raise AssertionError(f"{cleaner_id} has no work")


def test_three_share_the_work_while_one_is_killed_and_one_is_frozen(tmp_path: Path) -> None:
    """C44: a lease that is lost costs work, and nothing else."""
    topics = [made(tmp_path, f"t{number:02}", records=200, min_cleanable_dirty_ratio=0) for number in range(24)]
    slowly = {"read_rate": "200KB/s"}
    with (
        running(tmp_path, id="alpha", **slowly) as alpha,
        running(tmp_path, id="beta", **slowly) as beta,
        running(tmp_path, id="gamma", **slowly) as gamma,
    ):
        at_work(topics, "beta")
        beta.signal_all(signal.SIGKILL)
        at_work(topics, "gamma")
        gamma.signal_all(signal.SIGSTOP)
        time.sleep(2 * LEASE_S)
        gamma.signal_all(signal.SIGCONT)
        with running(tmp_path, id="beta", **slowly) as again:
            again.wait_for_kind("started")
            ends = time.monotonic() + WAIT_S
            while time.monotonic() < ends and not all(is_compacted(topic) for topic in topics):
                time.sleep(0.5)
            for cleaner in (alpha, gamma, again):
                cleaner.signal(signal.SIGTERM)
                assert cleaner.ended() == 0, cleaner.said
            for cleaner in (alpha, beta, gamma, again):
                assert cleaner.told("failed") + cleaner.told("quarantined") == []
    for topic in topics:
        check_whole(topic.warehouse, topic.topic_name)
        assert is_compacted(topic)


def test_a_spark_that_dies_is_started_anew(tmp_path: Path) -> None:
    topic = made(tmp_path, "orders", records=100)
    with running(tmp_path) as cleaner:
        cleaner.wait_for_kind("round")
        java = subprocess.run(
            ["ps", "-o", "pid=,comm=", "--ppid", str(cleaner.process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
        os.kill(int(java[0]), signal.SIGKILL)
        fed(topic, 100_00)
        cleaner.wait_for_kind("round")
        cleaner.signal(signal.SIGTERM)
        assert cleaner.ended() == 0
    assert is_compacted(topic)
