"""Topics of the benchmarks' own broker: filled as fast as Python can, and cleaned on request."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from confluent_kafka import Producer

from support.kafka.broker import KafkaBroker  # type: ignore[import-not-found]
from support.kafka.live_cleaner import HELD, RELEASED, cleaned_to  # type: ignore[import-not-found]
from support.servers.tcp_proxy import wait_until  # type: ignore[import-not-found]

DAY_MS = 86_400_000
LONGEST_S = 900.0
FLUSH_S = 60.0


def held_topic(broker: KafkaBroker) -> str:
    """A compacted topic of one partition that the cleaner does not clean until `clean` enables it."""
    config = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": HELD}
    return str(broker.make_topic(1, retention_ms="-1", **config))


def produce(broker: KafkaBroker, topic: str, batches: Iterable[pa.Table | pa.RecordBatch], codec: str = "none") -> int:
    """Writes the columns `timestamp`, `key` and `value` to partition 0. Returns the log end offset."""
    producer = broker.producer(
        compression_type=codec, linger_ms=50, queue_buffering_max_messages=1_000_000, batch_size=1_000_000
    )
    for batch in batches:
        rows = zip(*(batch.column(name).to_pylist() for name in ("timestamp", "key", "value")), strict=True)
        for timestamp, key, value in rows:
            send(producer, topic, key, value, timestamp)
        producer.poll(0)
    assert producer.flush(FLUSH_S) == 0
    return int(broker.log_start_and_end(topic)[1])


def send(producer: Producer, topic: str, key: bytes, value: bytes | None, timestamp: int, partition: int = 0) -> None:
    """Waits while the producer's queue is full."""
    while True:
        try:
            producer.produce(topic, value, key, partition, timestamp=timestamp)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def roll(broker: KafkaBroker, topic: str, last_ms: int) -> None:
    """Begins a new segment, since the cleaner leaves the active one alone. `last_ms` is the latest timestamp so far."""
    broker.alter_topic(topic, segment_ms="60000")
    producer = broker.producer()
    send(producer, topic, b"the first of a new segment", b"", last_ms + DAY_MS)
    assert producer.flush(FLUSH_S) == 0


def clean(broker: KafkaBroker, topic: str, end_offset: int) -> None:
    """Enables Kafka's cleaner, and waits until it has cleaned everything below that offset."""
    broker.alter_topic(topic, min_cleanable_dirty_ratio=RELEASED)
    wait_until(lambda: cleaned_to(broker, topic) >= end_offset, "Kafka's cleaner does not get through", LONGEST_S)
