"""Executors that are lost and Python workers that are killed for memory, in the middle of what they do.

On a real cluster, with speculation on top: rounds, ingests and writes come to the same as without, no file
is named twice and none that is named is missing (C6, C31).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import lithify
from lithify import Record, spark_source
from lithify.api.lake import Lake
from lithify.api.topic import Topic
from support.engines.kernel import compact_without_spark
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import KafkaCopy
from support.servers.spark_cluster import WORKERS, SparkCluster
from support.servers.tcp_proxy import wait_until

PARTITIONS, SEGMENTS, RECORDS = 3, 3, 400
NOW_MS = 1_700_000_000_000
HEARD_WITHIN_S = 1.0
"""A task of a process that was killed has failed by then. If none has, the process had none."""
Kill = Callable[[], list[int]]
"""Tells whom to kill."""


@pytest.fixture(params=["an executor", "Python workers"])
def victims(request: pytest.FixtureRequest, cluster: SparkCluster) -> Kill:
    if request.param == "an executor":
        return lambda: cluster.executors()[:1]
    return cluster.python_workers


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lithify.open(str(tmp_path / "lake"))


def filled(lake: Lake, name: str) -> Topic:
    topic = lake.create_topic(name, PARTITIONS, config={"delete.retention.ms": 0, "compression.type": "none"})
    for segment in range(SEGMENTS):
        topic.append(
            [
                Record(
                    b"k%d" % (n * (segment + 1) % RECORDS),
                    None if n % 11 == 5 else b"%d-%d" % (segment, n) + b"v" * 4096,
                    NOW_MS + n,
                    partition=n % PARTITIONS,
                )
                for n in range(RECORDS)
            ]
        )
    return topic


@contextmanager
def struck(session: SparkSession, victims: Kill, then: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Kills while tasks are under way, until a task has failed of it; then does what is to be done `then`."""
    tracker = session.sparkContext.statusTracker()
    failed, over = Event(), Event()
    spark: Any = session.sparkContext._jsc.sc()
    wait_until(lambda: spark.getExecutorMemoryStatus().size() > WORKERS, "an executor is missing")  # and the driver
    wait_until(lambda: not tracker.getActiveStageIds(), "what is before this goes on, and would be hit instead")

    def running() -> list[int]:
        stages = tracker.getActiveStageIds()
        return [s for s in stages if (info := tracker.getStageInfo(s)) is not None and info.numActiveTasks]

    def has_failed(stages: Collection[int]) -> bool:
        return any((info := tracker.getStageInfo(s)) is not None and info.numFailedTasks for s in stages)

    def strike() -> None:
        seen: set[int] = set()
        while not over.is_set() and not failed.is_set():
            if busy := running():
                seen.update(busy)
                time.sleep(0.3)  # well into it
                hit = victims() if running() else []
                for pid in hit:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                until_s = time.monotonic() + (HEARD_WITHIN_S if hit else 0)
                while not has_failed(seen) and time.monotonic() < until_s:
                    time.sleep(0.05)
            if has_failed(seen):
                failed.set()
                then()
            time.sleep(0.05)

    striking = Thread(target=strike)
    striking.start()
    try:
        yield
    finally:
        over.set()
        striking.join()
    assert failed.is_set(), "no task failed of it"


def check_files(topic: Topic) -> None:
    """Every file is named once, and is there."""
    store = topic.warehouse.store
    state = topic.state()
    paths = [segment.path for segment in chain(store.segments(state), store.view(state))]
    assert len(paths) == len(set(paths))
    assert topic.warehouse.files.missing(paths) == ()


def records(topic: Topic) -> list[tuple[object, ...]]:
    return [
        (r.partition, r.offset, r.key, r.value, r.timestamp) for p in topic.state().partitions for r in topic.reader(p)
    ]


def keys(topic: Topic) -> np.ndarray[Any, Any]:
    """Of all records, which are numbers in decimals."""
    files = topic.warehouse.files
    batches = (batch for segment in topic.warehouse.store.segments(topic.state()) for batch in files.read(segment, 0))
    return np.concatenate([batch.to_arrow()["key"].to_numpy().astype(int) for batch in batches])


def test_a_round(lake: Lake, session: SparkSession, victims: Kill) -> None:
    topic, twin = filled(lake, "topic"), filled(lake, "twin")
    with struck(session, victims, then=topic.throttle):  # at a byte a second it cannot end before
        report = topic.compact(spark=session, write_rate=1, now_ms=NOW_MS + 10_000)
    assert report.failed == ()
    compact_without_spark(twin, NOW_MS + 10_000)
    assert records(topic) == records(twin)
    check_files(topic)
    assert topic.verify(spark=session).findings == ()


def test_an_ingest(lake: Lake, session: SparkSession, broker: KafkaBroker, victims: Kill) -> None:
    """Of more partitions than there are cores: every process that is killed has a task, until the last ones."""
    copy = KafkaCopy(lake, broker, session, broker.make_topic(8))
    producer = broker.producer()
    for n in range(60_000):
        producer.produce(copy.topic, key=b"k%d" % n, value=os.urandom(300), partition=n % 8)
        producer.poll(0)
    assert producer.flush(60) == 0
    with struck(session, victims):
        report = copy.ingest()
    assert (report.error, report.records) == (None, 60_000)
    copy.check_equal()
    check_files(lake.topic("copy"))


def test_a_write(lake: Lake, session: SparkSession, tmp_path: Path, victims: Kill) -> None:
    spark_source.register(session, str(tmp_path / "lake"))
    target = lake.create_topic("target", 2)
    frame = session.range(0, 400_000, 1, 4).selectExpr(
        "cast(id as string) as key",
        "repeat(sha2(cast(id as string), 256), 4) as value",
        "cast(id % 2 as int) as partition",
    )
    with struck(session, victims):
        frame.write.format("lithify").mode("append").option("topic", "target").save()
    assert np.array_equal(np.sort(keys(target)), np.arange(400_000))
    check_files(target)
    wait_until(lambda: not session.sparkContext.statusTracker().getActiveStageIds(), "a task goes on")
