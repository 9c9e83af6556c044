"""Translated positions as MirrorMaker 2 writes them: records of the topic `ALIAS.checkpoints.internal` in the target.

    key     group, topic, partition                          strings with two bytes of length, numbers big-endian
    value   version 0, source offset, offset, metadata

Kafka's `RemoteClusterUtils.translateOffsets` reads them, for clients that keep their positions themselves.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lithify.errors import UnknownSourceError
from lithify.kafka.publisher.reports import TranslatedPosition
from lithify.kafka.publisher.target import Wanted, make, partitions_of
from lithify.kafka_client.client import SLICE_S, Cluster

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message

COMPACTED = {"cleanup.policy": "compact"}


def checkpoint(to: str, position: TranslatedPosition) -> tuple[bytes, bytes]:
    """Key and value."""
    key = _text(position.group) + _text(to) + struct.pack(">i", position.partition)
    return key, struct.pack(">hqq", 0, position.source_offset, position.offset) + _text("")


def put_checkpoints(cluster: Cluster, alias: str, target: Wanted, positions: Iterable[TranslatedPosition]) -> None:
    """Writes them for the source that clients call `alias`. Raises `BrokerError` and `UnknownSourceError`."""
    topic = f"{alias}.checkpoints.internal"
    failures: list[KafkaError] = []
    try:
        partitions_of(cluster, topic)
    except UnknownSourceError:
        make(cluster, Wanted(topic, replication_factor=target.replication_factor), 1, COMPACTED)

    def delivered(failure: KafkaError | None, _sent: Message) -> None:
        if failure is not None and not failures:
            failures.append(failure)

    producer = cluster.producer(acks="all", delivery_timeout_ms=max(1000, round(cluster.timeout_s * 1000)))
    with cluster.explained(topic):
        for position in positions:
            key, value = checkpoint(target.to, position)
            while True:
                try:
                    producer.produce(topic, value, key, 0, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(SLICE_S)
        while len(producer):  # each is delivered or has failed within the timeout
            producer.poll(SLICE_S)
    if failures:
        raise cluster.named(failures[0], topic)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded
