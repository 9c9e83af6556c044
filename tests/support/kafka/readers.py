"""Clients that nobody here wrote, each as a function that reads all records of a topic.

librdkafka, aiokafka, kafka-python, Kafka's own for Java, and Spark's source. All return the same rows, sorted, so that
what a broker gives to one of them is what a lake has to give to each.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from lithify import Record
from support.kafka.broker import QUIET, closed

WAIT_S = 60.0
Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]
"""Partition, offset, key, value, headers, timestamp."""
HEADERS = ((), (("h", b"x"), ("h", None), ("ü", b"")))
SINCE_MS = 1_700_000_000_050
"""Half of `some_records` are as new."""


def some_records() -> list[Record]:
    """With tombstones, without keys, with all kinds of headers, not in the order of their times."""
    values = (None, b"", b"value", b"x" * 100_000)
    return [
        Record(
            key=None if n % 7 == 3 else b"k%d" % (n % 20),
            value=values[n % 4],
            headers=HEADERS[n % 2],
            timestamp=1_700_000_000_000 + (n * 37) % 100,
            partition=n % 2,
        )
        for n in range(200)
    ]


def rows_of(records: list[Record]) -> list[Row]:
    """As a log has them that they are appended to in this order."""
    numbers: dict[int, int] = {}
    rows: list[Row] = []
    for one in records:
        partition = one.partition or 0
        offset = numbers[partition] = numbers.get(partition, -1) + 1
        rows.append((partition, offset, one.key, one.value, tuple(one.headers), one.timestamp or 0))
    return in_order(rows)


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda one: one[:2])


def by_confluent(address: str, topic: str, **more: Any) -> list[Row]:
    """All records of a topic, until each partition has ended."""
    ends = {"enable.partition.eof": True, "enable.auto.commit": False}
    config = {"bootstrap.servers": address, "group.id": "readers", **ends, **more, **QUIET}
    with closed(Consumer(config)) as consumer:
        partitions = [*consumer.list_topics(topic, WAIT_S).topics[topic].partitions]
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        rows, ended, until_s = [], set[int](), time.monotonic() + WAIT_S
        while len(ended) < len(partitions) and time.monotonic() < until_s:
            read = consumer.poll(1)
            if read is not None and read.error():
                assert read.error().code() == KafkaError._PARTITION_EOF, read.error()
                ended.add(read.partition())
            elif read is not None:
                rows.append(_confluent_row(read))
        assert len(ended) == len(partitions)
        return in_order(rows)


def _confluent_row(read: Any) -> Row:
    kind, timestamp = read.timestamp()
    assert kind == 1  # CreateTime
    return read.partition(), read.offset(), read.key(), read.value(), tuple(read.headers() or ()), timestamp


def by_aiokafka(address: str, topic: str, ends: Mapping[int, int], **more: Any) -> list[Row]:
    """All records below the ends of the partitions."""
    from aiokafka import AIOKafkaConsumer
    from aiokafka import TopicPartition as Partition

    async def read() -> list[Row]:
        async with AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", **more) as consumer:
            partitions = [Partition(topic, partition) for partition in ends]
            consumer.assign(partitions)
            assert {one.partition: end for one, end in (await consumer.end_offsets(partitions)).items()} == ends
            rows: list[Row] = []
            while any([await consumer.position(one) < ends[one.partition] for one in partitions]):
                for found in (await consumer.getmany(timeout_ms=1000)).values():
                    rows += map(_python_row, found)
            return in_order(rows)

    return asyncio.run(asyncio.wait_for(read(), WAIT_S))


def _python_row(read: Any) -> Row:
    assert read.timestamp_type == 0  # CreateTime
    return read.partition, read.offset, read.key, read.value, tuple(read.headers), read.timestamp


def by_kafka_python(address: str, topic: str, ends: Mapping[int, int], **more: Any) -> list[Row]:
    """All records below the ends of the partitions."""
    from kafka import KafkaConsumer
    from kafka import TopicPartition as Partition

    own = {"bootstrap_servers": address, "enable_auto_commit": False, "auto_offset_reset": "earliest", **more}
    consumer = KafkaConsumer(**own)
    try:
        partitions = [Partition(topic, partition) for partition in ends]
        consumer.assign(partitions)
        assert {one.partition: end for one, end in consumer.end_offsets(partitions).items()} == ends
        rows, until_s = list[Row](), time.monotonic() + WAIT_S
        while any(consumer.position(one) < ends[one.partition] for one in partitions):
            assert time.monotonic() < until_s
            for found in consumer.poll(timeout_ms=1000).values():
                rows += map(_python_row, found)
        return in_order(rows)
    finally:
        consumer.close()


def by_java(jvm: Any, address: str, topic: str, ends: Mapping[int, int], **more: str) -> list[Row]:
    """All records below the ends of the partitions, by the client that a JVM has. In `more` a `_` is a `.`."""
    consumer = java_consumer(jvm, address, **{"max.poll.records": "10000", **more})
    try:
        partitions = jvm.java.util.ArrayList()
        for partition in ends:
            partitions.add(jvm.org.apache.kafka.common.TopicPartition(topic, partition))
        assert {one.partition(): end for one, end in consumer.endOffsets(partitions).items()} == ends
        consumer.assign(partitions)
        consumer.seekToBeginning(partitions)
        rows, until_s = list[Row](), time.monotonic() + WAIT_S
        while any(consumer.position(one) < ends[one.partition()] for one in partitions):
            assert time.monotonic() < until_s
            rows += polled(jvm, consumer)
        return in_order(rows)
    finally:
        consumer.close()


def java_consumer(jvm: Any, address: str, **more: str) -> Any:
    bytes_of = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    settings = jvm.java.util.HashMap()
    own = {"bootstrap.servers": address, "key.deserializer": bytes_of, "value.deserializer": bytes_of, **more}
    for name, value in own.items():
        settings.put(name.replace("_", "."), value)
    return jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)


def polled(jvm: Any, consumer: Any) -> list[Row]:
    """What a consumer of Java gets at once, or within a second."""
    rows, found = list[Row](), consumer.poll(jvm.java.time.Duration.ofSeconds(1)).iterator()
    while found.hasNext():
        one = found.next()
        headers = tuple((header.key(), _bytes(header.value())) for header in one.headers().toArray())
        rows.append((one.partition(), one.offset(), _bytes(one.key()), _bytes(one.value()), headers, one.timestamp()))
    return rows


def by_spark(session: SparkSession, address: str, topic: str, **options: str) -> list[Row]:
    source = session.read.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic)
    return spark_rows(source.option("includeHeaders", "true").options(**options).load())


def spark_rows(frame: DataFrame) -> list[Row]:
    found = []
    for one in frame.collect():
        headers = tuple((header.key, _bytes(header.value)) for header in one.headers or ())
        timestamp = round(one.timestamp.timestamp() * 1000)
        found.append((one.partition, one.offset, _bytes(one.key), _bytes(one.value), headers, timestamp))
    return in_order(found)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
