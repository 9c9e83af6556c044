"""Records chosen to hurt an ingest: as large as they may be, tiny and many, one key, one giant key.

What a task holds is bounded by bytes, whatever the records (C38), and the copy is equal to the byte.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lithify
from support.engines.kernel import compact_without_spark
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import KafkaCopy
from support.servers.spark_cluster import children

MIB = 2**20
LARGEST = 40 * MIB
BATCH_MIB, TASK_MIB = 800, 650
Given = tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]
"""Key, value, headers."""


def largest() -> Iterator[Given]:
    yield b"large", os.urandom(LARGEST), []
    yield b"small", b"v", []
    yield b"large", os.urandom(LARGEST), []


def tiny_and_many() -> Iterator[Given]:
    for n in range(75_000):
        yield b"", (b"" if n % 2 else None), []


def one_key() -> Iterator[Given]:
    for n in range(30_000):
        yield b"the one", b"v%d" % n, []


def a_giant_key() -> Iterator[Given]:
    """And keys that no bound of a file's statistics can be above."""
    for n in range(3):
        yield b"\xff" * (10 * MIB), b"v%d" % n, []
        yield b"\xff" * 64, None, []
        yield b"\x00" * MIB, b"", []


def many_headers() -> Iterator[Given]:
    for n in range(20):
        yield b"k%d" % (n % 3), b"v", [(f"h{i}", b"x" * (i % 7)) for i in range(5_000)]


def produced(broker: KafkaBroker, topic: str, given: Iterable[Given]) -> list[Given]:
    producer = broker.producer(message_max_bytes=2 * LARGEST, queue_buffering_max_kbytes=2**18)
    sent = []
    for key, value, headers in given:
        while True:
            try:
                producer.produce(topic, key=key, value=value, headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        sent.append((key, value, headers))
    assert producer.flush(120) == 0
    return sent


@pytest.mark.parametrize("given", [largest, tiny_and_many, one_key, a_giant_key, many_headers])
def test_chosen_records(
    tmp_path: Path, broker: KafkaBroker, session: SparkSession, given: Callable[[], Iterator[Given]]
) -> None:
    topic = broker.make_topic(1, max_message_bytes=str(2 * LARGEST))
    copy = KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, topic)
    sent = produced(broker, topic, given())
    report = copy.ingest(config={"cleanup.policy": "compact"})
    assert (report.error, report.records) == (None, len(sent))
    copy.check_equal()
    made = copy.lake.topic("copy")
    made.alter({"delete.retention.ms": 0})
    compact_without_spark(made)
    latest = {key: value for key, value, _ in sent}
    left = {record.key: record.value for record in made.reader(0)}
    assert left == {key: value for key, value in latest.items() if value is not None}


def test_what_a_task_holds_is_bounded_by_bytes(tmp_path: Path, broker: KafkaBroker, session: SparkSession) -> None:
    """A batch of large records, of which 10,000 would be one piece by their number alone."""
    topic = broker.make_topic(1, max_message_bytes=str(2 * LARGEST))
    copy = KafkaCopy(lithify.open(str(tmp_path / "lake")), broker, session, topic)
    chunk = os.urandom(MIB)
    sent = produced(broker, topic, ((b"k%d" % n, chunk[n:], []) for n in range(BATCH_MIB)))
    report = copy.ingest()
    assert (report.error, report.records) == (None, len(sent))
    assert [len(r.value or b"") for r in copy.lake.topic("copy").reader(0)] == [
        len(chunk) - n for n in range(BATCH_MIB)
    ]
    assert 0 < most_memory(session) < TASK_MIB * MIB


def most_memory(session: SparkSession) -> int:
    """The most that a Python worker of the session has had, in bytes."""
    started = children([os.getpid()], "java")
    jvms = started + children(started, "CoarseGrainedExecutorBackend")  # of a cluster
    workers = children(children(jvms, "pyspark.daemon"), "pyspark.daemon")
    peaks = [re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()) for pid in workers]
    return max(int(peak[1]) for peak in peaks if peak) * 1024
