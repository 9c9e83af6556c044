"""Real processes, ended by SIGKILL at random moments (C6).

    any verb         children of a warm program, on a real warehouse, without a JVM: most of the kills
    groups           such children that read as members of a group, move its positions, or edit a stream
    producers        whole programs, with the machine's clock
    lithify compact  whole programs, with Spark, its JVM and its workers

After every kill the logs are whole: nothing acknowledged is lost, and what was under way is there
entirely or not at all. At the end everything gets through. Moments are drawn between nothing and
the time an undisturbed one takes, so that every phase is hit in the long run.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

import lithify
from kills import any_group
from kills.any_verb import VERBS
from lithify.api.topic import Topic
from support.processes import producer
from support.processes.producer import BATCH_RECORDS, batch
from support.processes.programs import finished, kill, start
from support.topics.whole_logs import check_whole, compacted, contents

pytestmark = [pytest.mark.kills, pytest.mark.timeout(7200)]

HERE = Path(__file__).parent
KILLS = int(os.environ.get("LITHIFY_KILLS", "40"))
"""How many processes are killed in all: `LITHIFY_KILLS=1000 pytest tests/kills`."""
WHOLE_PROGRAMS = max(1, KILLS // 20)
"""So many are producers and as many rounds, with the programs as people start them; the rest are children."""
KILLS_OF_GROUPS = KILLS // 5
"""So many more are children of another program."""
CHILDREN = KILLS - 2 * WHOLE_PROGRAMS
PROGRAMS = 2
"""So many kill at a time, each in warehouses of its own."""


def test_killed_verbs_happen_or_do_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """C6: every verb that writes; then a topic is what the textbook says, and readers get what they got."""
    shares = [CHILDREN // PROGRAMS + (number < CHILDREN % PROGRAMS) for number in range(PROGRAMS)]
    programs = []
    for number, share in enumerate(shares):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        # What children leave behind outside of a warehouse goes with the rest of the test.
        env = {"PYTHONPATH": str(HERE.parent), "TMPDIR": str(folder)}
        programs.append(start(str(HERE / "any_verb.py"), str(folder), str(number), str(share), env=env))
    came: dict[str, Counter[str]] = {verb: Counter() for verb in VERBS}
    for program in programs:
        figures = json.loads(finished(program, timeout_s=120 + 20 * CHILDREN).splitlines()[-1])
        for verb, counts in figures["kills"].items():
            came[verb].update(counts)
    with capsys.disabled():
        for verb, counts in came.items():
            print(f"\n{verb:<22}" + "".join(f"{n:>6} {what}" for what, n in counts.items()), end="")
    assert sum(counts.total() for counts in came.values()) == CHILDREN
    assert 20 * len(VERBS) > CHILDREN or all(counts.total() > 5 for counts in came.values())


def test_killed_verbs_of_a_group_move_all_positions_or_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """C56, C58: and so do edits of a stream, which a topic has followed by its next round."""
    program = start(any_group.__file__, str(tmp_path), "0", str(KILLS_OF_GROUPS), env={"PYTHONPATH": str(HERE.parent)})
    kills = json.loads(finished(program, timeout_s=120 + 20 * KILLS_OF_GROUPS).splitlines()[-1])["kills"]
    with capsys.disabled():
        for verb, counts in kills.items():
            print(f"\n{verb:<22}" + "".join(f"{n:>6} {what}" for what, n in counts.items()), end="")
    assert sum(sum(counts.values()) for counts in kills.values()) == KILLS_OF_GROUPS


def compacting(warehouse: Path) -> subprocess.Popen[str]:
    return start("-m", "lithify", "--warehouse", str(warehouse), "compact", "orders", "--json")


def made(warehouse: Path) -> Topic:
    settings = {"delete.retention.ms": 0}
    return lithify.open(str(warehouse)).create_topic("orders", partitions=2, config=settings)


def test_killed_producers_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """C6: every acknowledged batch is there once, in order; the one in flight is there whole or not."""
    topic = made(tmp_path)
    luck = random.Random(20)
    done = 0
    for _ in range(WHOLE_PROGRAMS):
        process = start(producer.__file__, str(tmp_path), "orders", str(done))
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


def test_killed_rounds_change_all_or_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """C6: after each kill the log is as before the round or as after it, to the byte; and nothing runs on."""
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
    for number in range(1, WHOLE_PROGRAMS + 1):
        topic.append(batch(number))
        before = contents(topic.warehouse, topic.topic_name)
        after = compacted(topic.warehouse, topic.topic_name)
        process = compacting(tmp_path)
        with suppress(subprocess.TimeoutExpired):  # one that is done needs no waiting for
            process.wait(luck.uniform(0.2, 1.1) * usual_s)
        kill(process, alone=number % 2 == 0)
        check_whole(topic.warehouse, topic.topic_name)
        now = contents(topic.warehouse, topic.topic_name)
        assert now in (before, after)
        outcomes["before" if now == before else "after"] += 1
    assert sum(outcomes.values()) == WHOLE_PROGRAMS
    with capsys.disabled():
        print(f"\nkilled `lithify compact`: {outcomes}", end="")
    wanted = compacted(topic.warehouse, topic.topic_name)
    finished(compacting(tmp_path))
    assert contents(topic.warehouse, topic.topic_name) == wanted
    finished(start("-m", "lithify", "--warehouse", str(tmp_path), "verify", "orders", "--json"))
