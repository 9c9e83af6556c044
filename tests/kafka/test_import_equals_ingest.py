"""The import of a stopped broker's directory and the ingest from it while it ran come to the same copy.

Random records: of all codecs, in transactions that are committed, aborted or left open, with deletes, gaps that the
broker's cleaner left, log starts that were moved, and two leader epochs.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from pyspark.sql import SparkSession

import lithify
from lithify.api.topic import Topic
from lithify.kafka_log.directories.folders import log_directory
from support.kafka.broker import KafkaBroker, a_broker
from support.servers.tcp_proxy import wait_until

SEED = 1
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPIC = "orders"
LEFT = 0
"""Its last transaction has no end."""
PARTITIONS, STEPS, IN_TRANSACTIONS = 3, 30, 3
TIMES_MS = (1, 1_600_000_000_000, 1_700_000_000_123)
TIMED = (
    {"message_timestamp_type": "CreateTime", "segment_ms": str(TIMES_MS[-1] - 1)},
    {"message_timestamp_type": "LogAppendTime", "segment_ms": "300"},
)
"""One topic has both, one after the other: a stream of Spark for each would take most of the test's time."""
HEADERS = ([], [("a", b"\x00\xff"), ("a", None), ("", b"")], [("é", "ü".encode() * 40)])


class Chance:
    """What is produced, as a seed says."""

    def __init__(self, broker: KafkaBroker, seed: int) -> None:
        self._broker, self._random = broker, random.Random(seed)
        self._plain = [broker.producer(compression_type=codec, enable_idempotence=True) for codec in CODECS]
        self._transactional = [
            broker.producer(transactional_id=f"t{n}", compression_type=self._random.choice(CODECS))
            for n in range(IN_TRANSACTIONS)
        ]
        for producer in self._transactional:
            producer.init_transactions(30)
        self._left = broker.producer(transactional_id="left", transaction_timeout_ms=600_000)
        self._open: set[int] = set()

    def steps(self, number: int) -> None:
        every: Sequence[Callable[[], None]] = (self._plain_records, self._transaction, self._transaction, self._roll)
        for _ in range(number):
            self._random.choice(every)()

    def end_all(self) -> None:
        for n in sorted(self._open):
            self._end(n)

    def leave_one_open(self, partition: int) -> None:
        self._left.init_transactions(30)
        self._left.begin_transaction()
        self._produce(self._left, partition)

    def delete_some(self, partition: int) -> None:
        end = self._broker.log_start_and_end(TOPIC, partition)[1]
        where = TopicPartition(TOPIC, partition, self._random.randrange(1, end))

        def deleted() -> bool:
            with suppress(KafkaException):  # the new policy may not have got around
                return bool(self._broker.admin().delete_records([where])[where].result(timeout=30))
            return False

        wait_until(deleted, "no records are deleted")

    def _plain_records(self) -> None:
        self._produce(self._random.choice(self._plain))

    def _transaction(self) -> None:
        n = self._random.randrange(IN_TRANSACTIONS)
        if n in self._open and self._random.random() < 0.4:
            self._end(n)
            return
        if n not in self._open:
            self._transactional[n].begin_transaction()
            self._open.add(n)
        self._produce(self._transactional[n])

    def _end(self, n: int) -> None:
        producer = self._transactional[n]
        self._random.choice((producer.commit_transaction, producer.abort_transaction))(30)
        self._open.remove(n)

    def _roll(self) -> None:
        time.sleep(0.05)  # `segment.ms` is a few of these

    def _produce(self, producer: Producer, partition: int | None = None) -> None:
        partition = self._random.randrange(PARTITIONS) if partition is None else partition
        for _ in range(self._random.randint(1, 8)):
            when = self._random.choice((None, *TIMES_MS))
            producer.produce(
                TOPIC,
                key=self._random.choice((b"", b"a", b"b", b"c" * 50, b"\x00\xff")),
                value=self._random.choice((None, b"", b"v", self._random.randbytes(300))),
                headers=self._random.choice(HEADERS),
                partition=partition,
                **({} if when is None else {"timestamp": when}),
            )
        assert producer.flush(30) == 0


def facts(topic: Topic, partition: int) -> dict[str, Any]:
    log = topic.state().log(partition)
    return {
        "records": [
            (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, r.headers) for r in topic.reader(partition)
        ],
        "start": log.log_start_offset,
        "end": log.log_end_offset,
        "epoch": log.source_epoch,
        "last": log.source_last,
    }


def stable_ends(broker: KafkaBroker, partition: int) -> bool:
    """Whether all transactions of a log have got to their ends."""
    ends = [broker.log_start_and_end(TOPIC, partition, committed=committed)[1] for committed in (False, True)]
    return ends[0] == ends[1]


def cleaned(broker: KafkaBroker) -> bool:
    """Whether its cleaner was at all logs with more than one segment, and has nothing in hand."""
    folders = [one for one in log_directory(broker.data).folders if one.topic == TOPIC]
    names = [path.suffix for one in folders for path in one.path.iterdir()]
    done = [bool(one.first_dirty) for one in folders if len([*one.path.glob("*.log")]) > 1]
    return any(done) and all(done) and not {".cleaned", ".swap"} & {*names}


@pytest.mark.timeout(300)
def test_an_import_and_an_ingest_come_to_the_same(tmp_path: Path, session: SparkSession) -> None:
    lake = lithify.open(str(tmp_path / "lake"))
    with a_broker(log_cleaner_delete_retention_ms="0") as broker:
        broker.make_topic(PARTITIONS, TOPIC, cleanup_policy="compact", min_cleanable_dirty_ratio="1.0", **TIMED[0])
        chance = Chance(broker, SEED)
        for timed in TIMED:
            broker.alter_topic(TOPIC, **timed)
            chance.steps(STEPS)
        chance.end_all()
        broker.stop()
        broker.start()
        broker.alter_topic(TOPIC, min_cleanable_dirty_ratio="0.0")
        wait_until(partial(cleaned, broker), "the cleaner is not done", 60)
        kept = {"min_cleanable_dirty_ratio": "1.0", "cleanup_policy": "compact,delete", "retention_ms": "-1"}
        kept["delete_retention_ms"] = "86400000"  # or the ingest misses deletes
        broker.alter_topic(TOPIC, **kept)
        chance = Chance(broker, SEED + 1)
        for timed in TIMED[::-1]:
            broker.alter_topic(TOPIC, **timed)
            chance.steps(STEPS)
        chance.end_all()
        chance.delete_some(1)
        for partition in range(PARTITIONS):
            wait_until(partial(stable_ends, broker, partition), f"{partition}: a transaction has no end")
        chance.leave_one_open(LEFT)
        chance.steps(STEPS // 10)
        chance.end_all()
        for partition in {*range(PARTITIONS)} - {LEFT}:
            wait_until(partial(stable_ends, broker, partition), f"{partition}: a transaction has no end")
        assert not stable_ends(broker, LEFT)
        servers = {"bootstrap.servers": broker.address}
        (report,) = lake.ingest(servers, [TOPIC], into="ingested", spark=session)
        assert report.error is None
        broker.stop()
        (report,) = lake.import_kafka([broker.data], pattern=".*", into="imported", spark=session)
        assert (report.source, report.error) == (TOPIC, None)
    total, types = 0, set[object]()
    for partition in range(PARTITIONS):
        theirs, ours = (facts(lake.topic(way), partition) for way in ("ingested", "imported"))
        assert ours == theirs, partition
        total += len(ours["records"])
        types |= {record[2] for record in ours["records"]}
    assert total > STEPS and len(types) == len(TIMED)
