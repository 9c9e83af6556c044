"""How long a client takes to a table of a Kafka topic: from the lake and on, or from all of Kafka.

    PYTHONPATH=src:tests python bench/hydrate.py --records 2000000 --keys 100000

Starts a broker of its own, writes the topic, copies it into a lake in a temporary folder and compacts it there
with the kernels of a round, then fills tables both ways and compares them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, TopicPartition

import lithify
from lithify.kafka import SnapshotConsumer
from lithify.model.record import Record
from lithify.service.compact import RunRequest, compact
from support.kafka_broker import KafkaBroker, a_broker  # type: ignore[import-not-found]
from support.kernel_engine import KernelEngine  # type: ignore[import-not-found]

APPENDED_AT_ONCE = 500_000
VALUE_BYTES = 200


def batches(records: int, keys: int) -> list[pa.Table]:
    """Uniform over the keys, random values, in ascending offsets."""
    luck = np.random.default_rng(7)
    values = luck.bytes(VALUE_BYTES + 65536)
    made = []
    for first in range(0, records, APPENDED_AT_ONCE):
        count = min(APPENDED_AT_ONCE, records - first)
        starts = luck.integers(0, 65536, count)
        made.append(
            pa.table(
                {
                    "partition": pa.array(np.zeros(count, np.int32)),
                    "offset": pa.array(np.arange(first, first + count)),
                    "timestamp": pa.array(np.full(count, 1_700_000_000_000)),
                    "key": pa.array([b"%015d" % key for key in luck.integers(0, keys, count)], pa.binary()),
                    "value": pa.array([values[s : s + VALUE_BYTES] for s in starts], pa.binary()),
                }
            )
        )
    return made


def write(broker: KafkaBroker, name: str, tables: list[pa.Table]) -> None:
    producer = broker.producer(compression_type="zstd", linger_ms=50, queue_buffering_max_messages=1_000_000)
    for table in tables:
        keys, values = table.column("key").to_pylist(), table.column("value").to_pylist()
        for key, value in zip(keys, values, strict=True):
            while True:
                try:
                    producer.produce(name, value, key, 0, timestamp=1_700_000_000_000)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()


def all_of_kafka(broker: KafkaBroker, name: str) -> dict[bytes, bytes | None]:
    """A plain consumer's table, as quick as the client allows: values alone, fetched by the thousand."""
    config = {"bootstrap.servers": broker.address, "group.id": "bench", "enable.partition.eof": True}
    consumer = Consumer(config)
    consumer.assign([TopicPartition(name, 0, 0)])
    table: dict[bytes, bytes | None] = {}
    while True:
        for found in consumer.consume(10_000, 1):
            failure = found.error()
            if failure is None:
                key = found.key()
                assert key is not None
                table[key] = found.value()
            elif failure.code() == KafkaError._PARTITION_EOF:
                consumer.close()
                return table


def main() -> None:
    """Prints the figures as JSON."""
    parser = argparse.ArgumentParser(description="Hydrating from the lake against reading all of Kafka.")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    tables = batches(given.records, given.keys)
    with a_broker(jvm=()) as broker, tempfile.TemporaryDirectory() as folder:
        name = broker.make_topic(1, retention_ms="-1")
        write(broker, name, tables)
        topic = lithify.open(str(Path(folder) / "lake")).create_topic(name)
        for table in tables:
            topic.append(table, keep_offsets=True)
        compact(topic.warehouse, KernelEngine(ranges=2), topic.topic_name, RunRequest())
        lake_s, kafka_s = [], []
        for _ in range(given.times):
            begun = time.monotonic()
            found: dict[bytes, Record] = {}
            with SnapshotConsumer(topic, {"bootstrap.servers": broker.address}) as consumer:
                consumer.fill(found)
            lake_s.append(round(time.monotonic() - begun, 2))
            begun = time.monotonic()
            whole = all_of_kafka(broker, name)
            kafka_s.append(round(time.monotonic() - begun, 2))
            assert {key: record.value for key, record in found.items()} == whole
    told = {"records": given.records, "keys": len(whole), "lake_s": lake_s, "kafka_s": kafka_s}
    print(json.dumps({**told, "times_faster": round(min(kafka_s) / min(lake_s), 1)}))


if __name__ == "__main__":
    main()
