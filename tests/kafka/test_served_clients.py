"""Clients that nobody here wrote read topics of a lake, beside a real broker with the same records.

librdkafka, aiokafka, kafka-python, Kafka's own clients for Java and Spark's Kafka source get the same keys, values,
headers, timestamps and offsets. They get past records that rounds have removed, by new segments or by masks.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lithify
from kafka import KafkaConsumer
from kafka import TopicPartition as Partition
from lithify import Record
from support.engines.kernel import compact_without_spark
from support.kafka.readers import (
    SINCE_MS,
    WAIT_S,
    Row,
    by_aiokafka,
    by_confluent,
    by_java,
    by_kafka_python,
    by_spark,
    in_order,
    rows_of,
    some_records,
    spark_rows,
)
from support.kafka.served import ServedLake, serving_kafka

NAME, ENDED = "shop.orders", "shop.ended"
ENDS = {0: 100, 1: 100}
LATE_MS = 20_000_000_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLake]:
    lake = lithify.open(str(tmp_path_factory.mktemp("served") / "lake"))
    lake.create_topic("shop/orders", 2, config={"cleanup.policy": "delete"}).append(some_records())
    at_once = {"delete.retention.ms": 0, "min.cleanable.dirty.ratio": 0}
    ended = lake.create_topic("shop/ended", 1, config=at_once)
    ended.append([Record(key, value, timestamp=5) for key, value in ((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))])
    ended.append([Record(b"c", value, timestamp=6) for value in (b"4", None)])
    compact_without_spark(ended, LATE_MS)
    assert [(record.offset, record.value) for record in ended.reader(0)] == [(1, b"2"), (2, b"3")]
    for name, own in (
        ("masked", {"segment.max.dead.ratio": 1, "segment.bytes": 1024}),
        ("beside", {"compaction.mode": "side-by-side"}),
    ):
        topic = lake.create_topic(f"shop/{name}", 1, config={**at_once, **own})
        topic.append([Record(b"k%d" % (n % 40), b"%d" % n, timestamp=n) for n in range(50)])
        compact_without_spark(topic, LATE_MS)
    with serving_kafka(lake) as one:
        yield one


def test_librdkafka_gets_what_it_gets_from_a_broker(served, in_kafka):
    assert in_kafka == rows_of(some_records())
    assert by_confluent(served.bootstrap, NAME) == in_kafka
    small = {"isolation.level": "read_uncommitted", "max.partition.fetch.bytes": 1000}
    assert by_confluent(served.bootstrap, NAME, **small) == in_kafka


@pytest.mark.parametrize("read", [by_aiokafka, by_kafka_python])
def test_clients_in_python_get_what_librdkafka_gets_from_a_broker(read, served, in_kafka):
    assert read(served.bootstrap, NAME, ENDS) == in_kafka


def test_kafka_python_finds_offsets_by_times(served, broker, in_kafka):
    found = []
    for address in (served.bootstrap, broker.address):
        consumer = KafkaConsumer(bootstrap_servers=address)
        partitions = [Partition(NAME, partition) for partition in ENDS]
        found.append(
            [
                consumer.beginning_offsets(partitions),
                *[consumer.offsets_for_times(dict.fromkeys(partitions, time)) for time in (0, SINCE_MS, LATE_MS)],
            ]
        )
        consumer.close()
    assert found[0] == found[1]


def test_spark_gets_what_librdkafka_gets_from_a_broker(served, in_kafka, session):
    assert by_spark(session, served.bootstrap, NAME) == in_kafka
    starts = {p: min(one[1] for one in in_kafka if one[0] == p and one[5] >= SINCE_MS) for p in ENDS}
    assert by_spark(session, served.bootstrap, NAME, startingTimestamp=str(SINCE_MS)) == [
        one for one in in_kafka if one[1] >= starts[one[0]]
    ]


def test_a_stream_of_spark_goes_on_where_it_was_stopped(served, session, tmp_path):
    topic = served.lake.create_topic("shop/streamed", 2, config={"delete.retention.ms": 0})
    rows = list[Row]()

    def takes() -> None:
        """All that there is now, by a new query on the same checkpoint."""
        source = session.readStream.format("kafka").option("kafka.bootstrap.servers", served.bootstrap)
        source = source.options(subscribe="shop.streamed", startingOffsets="earliest", includeHeaders="true")
        stream = source.load().writeStream.foreachBatch(lambda batch, _number: rows.extend(spark_rows(batch)))
        query = stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        assert query.awaitTermination(WAIT_S)

    keyed = [record for record in some_records() if record.key is not None]
    topic.append(keyed[:100])
    takes()
    topic.append(keyed[100:])
    compact_without_spark(topic, LATE_MS)  # also of what the stream has read
    takes()
    left = {(record.partition, record.offset) for record in topic.reader()}
    first, later = rows_of(keyed[:100]), [one for one in rows_of(keyed) if one not in rows_of(keyed[:100])]
    assert in_order(rows) == in_order(first + [one for one in later if one[:2] in left])
    assert len(rows) < len(keyed)


@pytest.mark.parametrize("of", ["kafka_jvm", "session"])
def test_kafkas_own_clients_get_what_librdkafka_gets_from_a_broker(of, served, in_kafka, request):
    """4.3.1, by both of its ways to read, and 3.9.2, which Spark has."""
    found = request.getfixturevalue(of)
    assert by_java(found._jvm if of == "session" else found.jvm, served.bootstrap, NAME, ENDS) == in_kafka


def test_an_end_that_rounds_have_removed_is_reached(served, session, kafka_jvm):
    left = [(0, 1, b"b", b"2", (), 5), (0, 2, b"a", b"3", (), 5)]
    assert by_confluent(served.bootstrap, ENDED) == left
    assert by_aiokafka(served.bootstrap, ENDED, {0: 5}) == left
    assert by_kafka_python(served.bootstrap, ENDED, {0: 5}) == left
    assert by_java(kafka_jvm.jvm, served.bootstrap, ENDED, {0: 5}) == left
    assert by_spark(session, served.bootstrap, ENDED) == left


@pytest.mark.parametrize("name", ["masked", "beside", "beside.compacted"])
def test_masked_records_are_hidden_and_a_view_is_read_by_a_name_of_its_own(name, served, session, kafka_jvm):
    stored, _, view = name.partition(".")
    topic = served.lake.topic(f"shop/{stored}")
    left = [
        (one.partition, one.offset, one.key, one.value, tuple(one.headers), one.timestamp)
        for one in topic.reader(compacted=bool(view))
    ]
    masks = [one.mask for one in topic.warehouse.store.segments(topic.state()) if one.mask is not None]
    assert (len(left), len(masks)) == {"masked": (40, 1), "beside": (50, 0), "beside.compacted": (40, 0)}[name]
    assert by_confluent(served.bootstrap, f"shop.{name}") == left
    assert by_kafka_python(served.bootstrap, f"shop.{name}", {0: 50}) == left
    assert by_java(kafka_jvm.jvm, served.bootstrap, f"shop.{name}", {0: 50}) == left
    assert by_spark(session, served.bootstrap, f"shop.{name}") == left
