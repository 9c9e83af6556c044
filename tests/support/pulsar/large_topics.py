"""Topics that no socket's buffers and no broker hold at once, and consumers of their copies."""

from __future__ import annotations

from pathlib import Path

import lithify
from lithify.api.topic import Topic
from lithify.model.message import MessageId
from lithify.model.record import Record
from lithify.pulsar.client import Cluster
from lithify.pulsar_consumer import PulsarSnapshotConsumer
from support.pulsar.clients import a_client
from support.pulsar.live_topics import config_of
from support.pulsar.server import PulsarServer

ENTRIES = 40
"""Of 1 MiB, in two ledgers."""


def large_topic(server: PulsarServer) -> tuple[str, MessageId]:
    """And the last id."""
    topic = server.make_topic()
    for _ in range(2):
        with a_client(server) as client:
            producer = client.create_producer(topic, batching_enabled=False, block_if_queue_full=True)
            for _ in range(ENTRIES // 2):
                producer.send_async(bytes(1 << 20), None)
            producer.flush()
        server.unload(topic)
    last = Cluster(config_of(server)).last_id(topic)
    assert last is not None
    return topic, last


def ids_of_all(first: int, last: int) -> list[tuple[int, int]]:
    """Ledger and entry of all that a large topic has in these two ledgers."""
    return [(ledger, entry) for ledger in (first, last) for entry in range(ENTRIES // 2)]


def empty_copy(folder: Path, topic: str) -> Topic:
    """Of a topic of which nothing was copied yet."""
    return lithify.open(str(folder)).create_topic(topic, like="pulsar", config={"message.ids": "pulsar"})


def first_of(consumer: PulsarSnapshotConsumer) -> list[Record]:
    """Three of them."""
    return [record for _ in range(3) if (record := consumer.poll(60)) is not None]


def rest_of(consumer: PulsarSnapshotConsumer) -> list[Record]:
    found = []
    while not consumer.caught_up():
        if (record := consumer.poll()) is not None:
            found.append(record)
    return found
