"""A topic of Kafka and its topic in a lake: copied offset by offset, compacted without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException, TopicPartition

import lithify
from lithify.kafka.consumer.live_tail import record_of
from lithify.model.record import Record
from lithify.reports.rounds.round import RoundReport
from support.engines.kernel import compact_without_spark
from support.kafka.broker import KafkaBroker, read_all
from support.servers.tcp_proxy import wait_until


@dataclass(slots=True)
class KafkaLake:
    """`name` in Kafka and in the lake."""

    broker: KafkaBroker
    topic: lithify.Topic
    name: str

    @property
    def conf(self) -> dict[str, str]:
        """Its reader's fetches at the end of a log are answered at once, and not after half a second."""
        return {"bootstrap.servers": self.broker.address, "fetch.wait.max.ms": "10"}

    @property
    def partitions(self) -> range:
        return self.topic.state().partitions

    def take_in(self) -> int:
        """Everything committed in Kafka that the lake has not; returns how many records."""
        taken = 0
        for partition in self.partitions:
            end = self.topic.state().log(partition).log_end_offset
            new = self.in_kafka(partition, start=end)
            for first in range(0, len(new), 1000):
                self.topic.append(new[first : first + 1000], keep_offsets=True)
            taken += len(new)
        return taken

    def compact(self, now_ms: int | None = None) -> RoundReport:
        return compact_without_spark(self.topic, now_ms)

    def in_kafka(self, partition: int = 0, *, start: int | None = None) -> list[Record]:
        """What a committed reader of Kafka gets."""
        return [record_of(found) for found in read_all(self.broker, self.name, partition, start=start)]

    def all_in_kafka(self) -> Iterator[Record]:
        for partition in self.partitions:
            yield from self.in_kafka(partition)

    def produce(self, records: Sequence[Record], **config: object) -> None:
        """In one transaction where a `transactional_id` is given."""
        producer = self.broker.producer(**config)
        if "transactional_id" in config:
            producer.init_transactions(30)
            producer.begin_transaction()
        send(producer, self.name, records)
        if "transactional_id" in config:
            producer.commit_transaction(30)
            wait_until(self._all_is_visible, "the transaction does not get to its end")
        assert producer.flush(30) == 0

    def _all_is_visible(self) -> bool:
        """A transaction that is committed may not be readable in all partitions yet."""
        ends = [
            self.broker.log_start_and_end(self.name, p, committed=c) for p in self.partitions for c in (False, True)
        ]
        return ends[::2] == ends[1::2]

    def let_go(self, before: int, partition: int = 0) -> None:
        """Kafka deletes what is below an offset."""
        self.broker.alter_topic(self.name, cleanup_policy="compact,delete", retention_ms="-1")
        where = TopicPartition(self.name, partition, before)

        def deleted() -> bool:
            with suppress(KafkaException):  # the new policy may not have got around
                return bool(self.broker.admin().delete_records([where])[where].result(timeout=30))
            return False

        wait_until(deleted, f"Kafka keeps what is below {before}")


def send(producer: object, topic: str, records: Sequence[Record]) -> None:
    def arrived(failure: object, _record: object) -> None:
        assert failure is None, failure

    for record in records:
        stamp = {} if record.timestamp is None else {"timestamp": record.timestamp}
        where = {} if record.partition is None else {"partition": record.partition}
        producer.produce(  # type: ignore[attr-defined]
            topic, record.value, record.key, headers=list(record.headers), on_delivery=arrived, **stamp, **where
        )
        producer.poll(0)  # type: ignore[attr-defined]


def kafka_lake(
    broker: KafkaBroker, folder: Path, partitions: int = 1, *, kafka: dict[str, str] | None = None, **config: object
) -> KafkaLake:
    """A new topic in both. In settings a `_` stands for a `.`; those in `kafka` are for Kafka alone.

    Kafka's own cleaner is held back, since records of old are in segments that it would clean at once.
    """
    own = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "1.0", **(kafka or {})}
    name = broker.make_topic(partitions, **own)
    settings = {key.replace("_", "."): value for key, value in {"null_key": "drop", **config}.items()}
    topic = lithify.open(str(folder / "lake")).create_topic(name, partitions, config=settings)
    return KafkaLake(broker, topic, name)


def table_of(records: Iterator[Record] | Sequence[Record]) -> dict[bytes, Record]:
    """The latest record of every live key, the plain way."""
    table: dict[bytes, Record] = {}
    for record in records:
        if record.key is not None and record.value is None:
            table.pop(record.key, None)
        elif record.key is not None:
            table[record.key] = record
    return table
