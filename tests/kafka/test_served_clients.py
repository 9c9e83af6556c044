"""Clients that nobody here wrote read topics of a lake, beside a real broker with the same records.

librdkafka, aiokafka, Kafka's own client for Java and Spark's Kafka source get the same keys, values, headers,
timestamps and offsets. They get past records that rounds have removed, and follow a truncation by themselves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession

from lithify import Record
from lithify.api.topic import Topic
from lithify.testing import memory_lake
from support.kafka.broker import QUIET, KafkaBroker
from support.kafka.lake import send
from support.kafka.served import ServedLake, serving_kafka

NAME, ENDED, WAIT_S = "shop.orders", "shop.ended", 60.0
LATE_MS = 20_000_000_000_000
Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]
"""Partition, offset, key, value, headers, timestamp."""
HEADERS = ((), (("h", b"x"), ("h", None), ("ü", b"")))


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


def row(partition: int, offset: int, record: Record) -> Row:
    return partition, offset, record.key, record.value, tuple(record.headers), record.timestamp


@pytest.fixture(scope="module")
def served() -> Iterator[ServedLake]:
    lake = memory_lake()
    lake.create_topic("shop/orders", 2, config={"cleanup.policy": "delete"}).append(some_records())
    ended = lake.create_topic("shop/ended", 1, config={"delete.retention.ms": 0, "min.cleanable.dirty.ratio": 0})
    ended.append(
        [Record(key=key, value=value, timestamp=5) for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))]
    )
    ended.append([Record(key=b"c", value=value, timestamp=6) for value in (b"4", None)])
    ended.compact(now_ms=LATE_MS)
    assert [(record.offset, record.value) for record in ended.reader(0)] == [(1, b"2"), (2, b"3")]
    with serving_kafka(lake) as one:
        yield one


@pytest.fixture(scope="module")
def in_kafka(broker: KafkaBroker) -> list[Row]:
    """The same records as a broker gives them to librdkafka."""
    topic = broker.make_topic(2, retention_ms="-1")
    producer = broker.producer()
    send(producer, topic, some_records())
    assert producer.flush(WAIT_S) == 0
    return by_confluent(broker.address, topic)


def by_confluent(address: str, topic: str, **more: Any) -> list[Row]:
    """All records of a topic, until each partition has ended."""
    ends = {"enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": address, "group.id": "readers", **ends, **more, **QUIET})
    try:
        partitions = [*consumer.list_topics(topic, WAIT_S).topics[topic].partitions]
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        rows, ended, until_s = [], set[int](), time.monotonic() + WAIT_S
        while len(ended) < len(partitions) and time.monotonic() < until_s:
            read = consumer.poll(1)
            if read is not None and read.error():
                ended.add(read.partition())
            elif read is not None:
                rows.append(_confluent_row(read))
        assert len(ended) == len(partitions)
        return sorted(rows, key=lambda one: one[:2])
    finally:
        consumer.close()


def _confluent_row(read: Any) -> Row:
    kind, timestamp = read.timestamp()
    assert kind == 1  # CreateTime
    return read.partition(), read.offset(), read.key(), read.value(), tuple(read.headers() or ()), timestamp


def by_aiokafka(address: str, topic: str, ends: dict[int, int]) -> list[Row]:
    """All records below the ends of the partitions."""
    from aiokafka import AIOKafkaConsumer
    from aiokafka import TopicPartition as Partition

    async def read() -> list[Row]:
        async with AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
            partitions = [Partition(topic, partition) for partition in ends]
            consumer.assign(partitions)
            assert {one.partition: end for one, end in (await consumer.end_offsets(partitions)).items()} == ends
            rows: list[Row] = []
            while any([await consumer.position(one) < ends[one.partition] for one in partitions]):
                for found in (await consumer.getmany(timeout_ms=1000)).values():
                    rows += [(r.partition, r.offset, r.key, r.value, tuple(r.headers), r.timestamp) for r in found]
            return sorted(rows, key=lambda one: one[:2])

    return asyncio.run(asyncio.wait_for(read(), WAIT_S))


def by_spark(session: SparkSession, address: str, topic: str, **options: str) -> list[Row]:
    source = session.read.format("kafka").option("kafka.bootstrap.servers", address).option("subscribe", topic)
    rows = source.option("includeHeaders", "true").options(**options).load().collect()
    found = []
    for one in rows:
        headers = tuple((header.key, _bytes(header.value)) for header in one.headers or ())
        timestamp = round(one.timestamp.timestamp() * 1000)
        found.append((one.partition, one.offset, _bytes(one.key), _bytes(one.value), headers, timestamp))
    return sorted(found, key=lambda one: one[:2])


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def test_librdkafka_gets_what_it_gets_from_a_broker(served, in_kafka):
    assert in_kafka == [
        row(partition, n, one) for partition in (0, 1) for n, one in enumerate(some_records()[partition::2])
    ]
    assert by_confluent(served.bootstrap, NAME) == in_kafka
    small = {"isolation.level": "read_uncommitted", "max.partition.fetch.bytes": 1000}
    assert by_confluent(served.bootstrap, NAME, **small) == in_kafka


def test_aiokafka_gets_what_librdkafka_gets_from_a_broker(served, in_kafka):
    assert by_aiokafka(served.bootstrap, NAME, {0: 100, 1: 100}) == in_kafka


def test_spark_gets_what_librdkafka_gets_from_a_broker(served, in_kafka, session):
    assert by_spark(session, served.bootstrap, NAME) == in_kafka
    since_ms = 1_700_000_000_050
    starts = {p: min(one[1] for one in in_kafka if one[0] == p and one[5] >= since_ms) for p in (0, 1)}
    assert by_spark(session, served.bootstrap, NAME, startingTimestamp=str(since_ms)) == [
        one for one in in_kafka if one[1] >= starts[one[0]]
    ]


def test_kafkas_own_client_gets_what_librdkafka_gets_from_a_broker(served, in_kafka, session):
    jvm = session._jvm
    bytes_of = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    settings = jvm.java.util.HashMap()
    for name, value in {"bootstrap.servers": served.bootstrap, "max.poll.records": "10000"}.items():
        settings.put(name, value)
    for name in ("key.deserializer", "value.deserializer"):
        settings.put(name, bytes_of)
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    partitions = jvm.java.util.ArrayList()
    for partition in (0, 1):
        partitions.add(jvm.org.apache.kafka.common.TopicPartition(NAME, partition))
    try:
        assert {one.partition(): end for one, end in consumer.endOffsets(partitions).items()} == {0: 100, 1: 100}
        consumer.assign(partitions)
        consumer.seekToBeginning(partitions)
        rows, until_s = [], time.monotonic() + WAIT_S
        while len(rows) < len(in_kafka) and time.monotonic() < until_s:
            found = consumer.poll(jvm.java.time.Duration.ofSeconds(1)).iterator()
            while found.hasNext():
                one = found.next()
                headers = tuple((header.key(), _bytes(header.value())) for header in one.headers().toArray())
                content = (_bytes(one.key()), _bytes(one.value()), headers, one.timestamp())
                rows.append((one.partition(), one.offset(), *content))
    finally:
        consumer.close()
    assert sorted(rows, key=lambda one: one[:2]) == in_kafka


def test_an_end_that_rounds_have_removed_is_reached(served, session):
    left = [(0, 1, b"b", b"2", (), 5), (0, 2, b"a", b"3", (), 5)]
    assert by_confluent(served.bootstrap, ENDED) == left
    assert by_aiokafka(served.bootstrap, ENDED, {0: 5}) == left
    assert by_spark(session, served.bootstrap, ENDED) == left


class Reading:
    """A consumer of librdkafka in the middle of a topic."""

    def __init__(self, served: ServedLake, topic: str) -> None:
        self.consumer = Consumer(
            {
                "bootstrap.servers": served.bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
                "enable.auto.commit": False,  # this server has no groups
                **QUIET,
            }
        )
        self.consumer.assign([TopicPartition(topic, 0, 0)])

    def until(self, is_last: Callable[[bytes | None], bool]) -> list[tuple[int, bytes | None]]:
        """Offsets and values up to a record with such a value."""
        found, until_s = [], time.monotonic() + WAIT_S
        while time.monotonic() < until_s:
            read = self.consumer.poll(1)
            if read is None or read.error():
                continue
            found.append((read.offset(), read.value()))
            if is_last(read.value()):
                return found
        raise AssertionError(f"{found} has no such record")


@pytest.fixture
def reading(served: ServedLake, request: pytest.FixtureRequest) -> Iterator[tuple[Topic, Reading]]:
    """A topic of its own with ten records, and a consumer that has read them."""
    name = f"shop/{request.node.name.replace('_', '-')}"
    config = {"delete.retention.ms": 0, "min.cleanable.dirty.ratio": 0}
    topic = served.lake.create_topic(name, 1, config=config)
    topic.append([Record(key=b"k%d" % (n % 3), value=b"v%d" % n, timestamp=5) for n in range(10)])
    reader = Reading(served, name.replace("/", "."))
    assert len(reader.until(lambda value: value == b"v9")) == 10
    yield topic, reader
    reader.consumer.close()


def appended(topic: Topic, value: bytes) -> None:
    topic.append([Record(key=b"new", value=value, timestamp=6)])


def test_a_round_under_a_consumer_is_not_noticed(reading):
    topic, reader = reading
    topic.compact(now_ms=LATE_MS)
    appended(topic, b"next")
    assert reader.until(lambda value: value == b"next") == [(10, b"next")]


def test_a_truncation_takes_a_consumer_back(reading):
    topic, reader = reading
    topic.truncate(0, 6)
    appended(topic, b"other")
    assert reader.until(lambda value: value == b"other")[-1] == (6, b"other")


def test_a_recreated_topic_is_read_from_its_beginning(served, reading):
    topic, reader = reading
    served.lake.delete_topic(str(topic.topic_name))
    served.lake.create_topic(str(topic.topic_name), 1)
    appended(topic, b"first")
    assert reader.until(lambda value: value == b"first") == [(0, b"first")]
