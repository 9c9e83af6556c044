"""Producers of two Kafka topics, a plain one and one in transactions of which every fifth is aborted."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from threading import Event, Thread

from support.kafka.broker import KafkaBroker, read_all

KEYS = 50_000
PARTITIONS = 2
TOPICS = ("plain", "transactional")
PACE_S = 0.05
WRITTEN_IN_S = 120
TOMBSTONES = 50
"""One record of so many."""
IN_A_TRANSACTION = 100


@dataclass(slots=True)
class Feed:
    """Producers that go on until they are asked to stop, and for `records` of the plain topic at least."""

    broker: KafkaBroker
    records: int
    pace_s: float = PACE_S
    keys: int = KEYS
    sent: dict[str, int] = field(default_factory=dict)
    done: Event = field(default_factory=Event)
    threads: list[Thread] = field(default_factory=list)

    def start(self) -> None:
        self.threads = [Thread(target=self._plain), Thread(target=self._transactional)]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.done.set()
        for thread in self.threads:
            thread.join()

    @property
    def has_written_enough(self) -> bool:
        return self.sent.get("plain", 0) >= self.records

    def _plain(self) -> None:
        producer, luck, n = self.broker.producer(compression_type="lz4"), random.Random(1), 0
        at_once = max(1, round(self.records * self.pace_s / WRITTEN_IN_S))
        while not self.done.is_set():
            for _ in range(at_once):
                value = None if n % TOMBSTONES == 0 else b"value %d " % n + luck.randbytes(80)
                producer.produce("plain", value, b"key-%d" % luck.randrange(self.keys))
                n += 1
            producer.flush()
            self.sent["plain"] = n
            self.done.wait(self.pace_s)

    def _transactional(self) -> None:
        producer, luck, n = self.broker.producer(transactional_id="chain"), random.Random(2), 0
        producer.init_transactions()
        while not self.done.is_set():
            producer.begin_transaction()
            for _ in range(IN_A_TRANSACTION):
                producer.produce("transactional", b"value %d" % n, b"key-%d" % luck.randrange(self.keys // 10))
                n += 1
            (producer.abort_transaction if n % 500 == 0 else producer.commit_transaction)()
            self.sent["transactional"] = n
            self.done.wait(self.pace_s)


def table_of_kafka(broker: KafkaBroker, topic: str) -> dict[bytes, bytes]:
    """What a consumer of committed records that reads all of it has in the end."""
    table: dict[bytes, bytes] = {}
    for partition in range(PARTITIONS):
        for message in read_all(broker, topic, partition):
            if message.value() is None:
                table.pop(message.key(), None)
            else:
                table[message.key()] = message.value()
    return table
