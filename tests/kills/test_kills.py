"""Real processes, ended by SIGKILL at random moments (C6).

After every kill the logs are whole: nothing acknowledged is lost, a round is there entirely or not
at all. At the end a round gets through and `verify` finds nothing. Moments are drawn between the
start of a process and the time an undisturbed one took, so that every phase is hit in the long run.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import lithify
from kills.producer import BATCH_RECORDS, batch
from lithify.topic import Topic
from support.whole_logs import check_whole, compacted, contents

pytestmark = pytest.mark.timeout(3600)

PRODUCER = Path(__file__).parent / "producer.py"


def start(*command: str) -> subprocess.Popen[str]:
    """A process in a group of its own, so that what it starts (a JVM, workers) dies with it."""
    return subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[str]) -> str:
    """Ends the whole group at once; returns what it had printed."""
    with suppress(ProcessLookupError):  # it and all that it started are gone already
        os.killpg(process.pid, signal.SIGKILL)
    printed, _ = process.communicate()
    return printed


def compacting(warehouse: Path) -> subprocess.Popen[str]:
    return start("-m", "lithify", "--warehouse", str(warehouse), "compact", "orders", "--json")


def finished(process: subprocess.Popen[str]) -> None:
    printed, errors = process.communicate()
    assert process.returncode == 0, printed + errors


def made(warehouse: Path) -> Topic:
    settings = {"delete.retention.ms": 0}
    return lithify.open(str(warehouse)).create_topic("orders", partitions=2, config=settings)


def test_killed_producers_lose_nothing_acknowledged(tmp_path: Path, kills: int) -> None:
    """C6: every acknowledged batch is there once, in order; the one in flight is there whole or not."""
    topic = made(tmp_path)
    luck = random.Random(20)
    done = 0
    for _ in range(kills):
        process = start(str(PRODUCER), str(tmp_path), "orders", str(done))
        assert process.stdout is not None
        acknowledged = process.stdout.readline()  # so that the kill meets a producer at work
        time.sleep(luck.uniform(0, 0.5))
        acknowledged += kill(process)
        acked = int(acknowledged.split()[-1]) + 1
        check_whole(topic.warehouse, topic.topic_name)
        there = sum(len(log) for log in contents(topic.warehouse, topic.topic_name))
        assert there % BATCH_RECORDS == 0
        assert acked <= there // BATCH_RECORDS <= acked + 1
        done = there // BATCH_RECORDS
    sent = [record for number in range(done) for record in batch(number)]
    for partition, log in enumerate(contents(topic.warehouse, topic.topic_name)):
        assert [r.offset for r in log] == list(range(len(log)))
        mine = {(r.key, r.value, r.timestamp) for r in log}
        assert [(r.key, r.value, r.timestamp) for r in log] == [
            (r.key, r.value, r.timestamp) for r in sent if (r.key, r.value, r.timestamp) in mine
        ], partition


def test_killed_rounds_change_all_or_nothing(tmp_path: Path, kills: int) -> None:
    """C6: after each kill the log is as before the round or as after it, to the byte."""
    topic = made(tmp_path)
    luck = random.Random(21)
    topic.append(batch(0))
    wanted = compacted(topic.warehouse, topic.topic_name)
    assert wanted != contents(topic.warehouse, topic.topic_name)
    began = time.monotonic()
    finished(compacting(tmp_path))
    usual_s = time.monotonic() - began
    assert contents(topic.warehouse, topic.topic_name) == wanted
    outcomes = {"before": 0, "after": 0}
    for number in range(1, kills + 1):
        topic.append(batch(number))
        before = contents(topic.warehouse, topic.topic_name)
        after = compacted(topic.warehouse, topic.topic_name)
        process = compacting(tmp_path)
        with suppress(subprocess.TimeoutExpired):  # one that is done needs no waiting for
            process.wait(luck.uniform(0.2, 1.1) * usual_s)
        kill(process)
        check_whole(topic.warehouse, topic.topic_name)
        now = contents(topic.warehouse, topic.topic_name)
        assert now in (before, after)
        outcomes["before" if now == before else "after"] += 1
    assert sum(outcomes.values()) == kills
    print(f"killed rounds: {outcomes}")
    wanted = compacted(topic.warehouse, topic.topic_name)
    finished(compacting(tmp_path))
    assert contents(topic.warehouse, topic.topic_name) == wanted
    finished(start("-m", "lithify", "--warehouse", str(tmp_path), "verify", "orders", "--json"))
