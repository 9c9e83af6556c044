"""Records that come in while an ingest is struck."""

from __future__ import annotations

from threading import Event

from support.kafka.broker import KafkaBroker

KEYS = 200


def feed(broker: KafkaBroker, topic: str, done: Event) -> None:
    """Something new in every batch, but no more than can be compared: programs may be slow to start."""
    producer, n = broker.producer(), 0
    while not done.is_set():
        for _ in range(10):
            producer.produce(topic, key=b"k%d" % (n % KEYS), value=b"v%d" % n)
            n += 1
        producer.flush()
        done.wait(0.05)
