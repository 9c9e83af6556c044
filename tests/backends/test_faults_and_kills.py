"""Every port call of an append and a round struck, and producers killed, on PostgreSQL and S3 (C6)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lithify
from lithify.ports.store import Warehouse
from lithify.service.write.append import append
from support.faults.ports import Kind
from support.faults.struck import Prepared, check_struck_append, check_struck_round, prepared, strikes
from support.faults.topics import NAME, records
from support.processes.producer import BATCH_RECORDS, batch
from support.store.builders import Place
from support.topics.whole_logs import check_whole, contents

from .conftest import Backend

KILLS = 5
PRODUCER = """
import itertools, sys
import lithify
from support.processes.producer import batch
orders = lithify.open(catalog="prod").topic("orders")
for number in itertools.count(int(sys.argv[1])):
    orders.append(batch(number))
    print(number, flush=True)
"""


@pytest.fixture
def ready(place: Place) -> Prepared:
    """A topic with some history. It goes on from one strike to the next."""
    return prepared(lambda _: Warehouse(place.store, place.files, place.clock), Path())


@pytest.mark.parametrize("kind", [Kind.LOSES_ANSWER, Kind.CRASHES_AFTER], ids=lambda kind: kind.name.lower())
def test_a_struck_round_is_all_or_nothing(kind: Kind, ready: Prepared) -> None:
    """C31: and a new one gets through."""
    for injector in strikes(kind, "s3"):
        check_struck_round(ready, injector)
        append(ready.warehouse, NAME, records(range(40, 60), keys=6))


def test_a_struck_append_is_all_or_nothing(ready: Prepared) -> None:
    for injector in strikes(Kind.LOSES_ANSWER):
        check_struck_append(ready, injector)


def test_killed_producers_lose_nothing_acknowledged(backend: Backend) -> None:
    """Every acknowledged batch is there once and in order, the one in flight wholly or not at all."""
    topic = lithify.open(catalog="prod").create_topic("orders", partitions=2)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    luck, done = random.Random(22), 0
    for _ in range(KILLS):
        with subprocess.Popen(
            [sys.executable, "-c", PRODUCER, str(done)], stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            said = process.stdout.readline()  # so that the kill meets it at work
            time.sleep(luck.uniform(0, 0.5))
            process.kill()
            said += process.stdout.read()
        acknowledged = int(said.split()[-1]) + 1
        check_whole(topic.warehouse, topic.topic_name)
        logs = contents(topic.warehouse, topic.topic_name)
        there = sum(map(len, logs))
        assert there in (acknowledged * BATCH_RECORDS, (acknowledged + 1) * BATCH_RECORDS)
        done = there // BATCH_RECORDS
    sent = [(r.key, r.value) for number in range(done) for r in batch(number)]
    for log in contents(topic.warehouse, topic.topic_name):
        mine = {(r.key, r.value) for r in log}
        assert [(r.key, r.value) for r in log] == [pair for pair in sent if pair in mine]
        assert [r.offset for r in log] == list(range(len(log)))
