"""How long a client takes to fill a table of a Kafka topic: from the lake and Kafka's tail, or from Kafka alone.

    PYTHONPATH=src:tests python bench/hydrate.py --records 2000000 --keys 100000

Starts its own broker, writes the topic, copies it into a lake in a temporary folder and compacts it there
with the kernels of a round, then fills tables both ways and compares them, and repeats this after Kafka's own
cleaner has compacted the topic.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition

import lithify
from kafka_topics import clean, held_topic, produce, roll
from lithify.kafka import SnapshotConsumer
from lithify.model.record import Record
from lithify.service.round.compact import RunRequest, compact
from shown import add_publish, shown
from support.engines.kernel import KernelEngine  # type: ignore[import-not-found]
from support.kafka.broker import KafkaBroker, a_broker  # type: ignore[import-not-found]

APPENDED_AT_ONCE = 500_000
VALUE_BYTES = 200
TIMESTAMP_MS = 1_700_000_000_000


def batches(records: int, keys: int) -> Iterator[pa.Table]:
    """Uniform over the keys, random values, in ascending offsets."""
    luck = np.random.default_rng(7)
    values = luck.bytes(VALUE_BYTES + 65536)
    for first in range(0, records, APPENDED_AT_ONCE):
        count = min(APPENDED_AT_ONCE, records - first)
        starts = luck.integers(0, 65536, count)
        yield pa.table(
            {
                "partition": pa.array(np.zeros(count, np.int32)),
                "offset": pa.array(np.arange(first, first + count)),
                "timestamp": pa.array(np.full(count, TIMESTAMP_MS)),
                "key": pa.array([b"%015d" % key for key in luck.integers(0, keys, count)], pa.binary()),
                "value": pa.array([values[s : s + VALUE_BYTES] for s in starts], pa.binary()),
            }
        )


def all_of_kafka(broker: KafkaBroker, name: str) -> dict[bytes, bytes | None]:
    """A plain consumer's table, as quick as the client allows: values alone, and 2.5 times its usual pace."""
    config = {
        "bootstrap.servers": broker.address,
        "group.id": "bench",
        "enable.partition.eof": True,
        "fetch.message.max.bytes": 16 * 2**20,
        "queued.min.messages": 1_000_000,
        "queued.max.messages.kbytes": 2**20,
    }
    consumer = Consumer(config)
    consumer.assign([TopicPartition(name, 0, 0)])
    table: dict[bytes, bytes | None] = {}
    while True:
        for message in consumer.consume(10_000, 0.1):
            failure = message.error()
            if failure is None:
                key = message.key()
                assert key is not None
                table[key] = message.value()
            elif failure.code() == KafkaError._PARTITION_EOF:
                consumer.close()
                return table


def main() -> None:
    """Prints the figures as JSON."""
    parser = argparse.ArgumentParser(description="Hydrating from the lake against reading all of Kafka.")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    add_publish(parser)
    given = parser.parse_args()
    with shown(given) as show, a_broker(jvm=()) as broker, tempfile.TemporaryDirectory() as folder:
        name = held_topic(broker)
        end = produce(broker, name, batches(given.records, given.keys), "zstd")
        topic = lithify.open(str(Path(folder) / "lake")).create_topic(name)
        for table in batches(given.records, given.keys):
            topic.append(table, keep_offsets=True)
        compact(topic.warehouse, KernelEngine(ranges=2), topic.topic_name, RunRequest())

        def from_lake() -> dict[bytes, Record]:
            table: dict[bytes, Record] = {}
            with SnapshotConsumer(topic, {"bootstrap.servers": broker.address}) as consumer:
                consumer.fill(table)
            return table

        log = {"records": given.records, "keys": given.keys}
        show(in_kafka="all records", **log, **in_turns(broker, name, from_lake, given.times))
        roll(broker, name, TIMESTAMP_MS)
        clean(broker, name, end)
        show(in_kafka="compacted by Kafka", **log, **in_turns(broker, name, from_lake, given.times))


def in_turns(
    broker: KafkaBroker, name: str, from_lake: Callable[[], dict[bytes, Record]], times: int
) -> dict[str, object]:
    """Fills tables both ways and compares them: seconds of each, and the median of their ratios."""
    lake_s, kafka_s = [], []
    for _ in range(times):
        begun = time.monotonic()
        table = from_lake()
        lake_s.append(time.monotonic() - begun)
        begun = time.monotonic()
        whole = all_of_kafka(broker, name)
        kafka_s.append(time.monotonic() - begun)
        assert {key: record.value for key, record in table.items()} == whole
    ratio = median(kafka / lake for kafka, lake in zip(kafka_s, lake_s, strict=True))
    return {
        "from_the_lake_s": [round(s, 2) for s in lake_s],
        "from_kafka_s": [round(s, 2) for s in kafka_s],
        "ratio": round(ratio, 2),
    }


if __name__ == "__main__":
    main()
