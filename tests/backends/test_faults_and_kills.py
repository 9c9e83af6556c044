"""Every port call of an append and a round struck, and producers killed, on PostgreSQL and S3 (C6)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import lithify
from lithify.errors import UnknownTopicError
from lithify.ports.store import Warehouse
from support.faults.ports import Kind
from support.faults.struck import Prepared, check_struck_append, check_struck_round, prepared, strikes
from support.faults.topics import NAME
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


def prepared_anew(place: Place) -> Prepared:
    """The topic with its history, made once more."""
    with suppress(UnknownTopicError):
        place.store.drop_topic(NAME)
    return prepared(lambda _: Warehouse(place.store, place.files, place.clock), Path())


@pytest.mark.parametrize("kind", [Kind.LOSES_ANSWER, Kind.CRASHES_AFTER], ids=lambda kind: kind.name.lower())
def test_a_struck_round_is_all_or_nothing(kind: Kind, place: Place) -> None:
    """C31: and a new one gets through."""
    for injector in strikes(kind, "s3"):
        check_struck_round(prepared_anew(place), injector)


def test_a_struck_append_is_all_or_nothing(place: Place) -> None:
    for injector in strikes(Kind.LOSES_ANSWER):
        check_struck_append(prepared_anew(place), injector)


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
