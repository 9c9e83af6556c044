"""Pulsar's own client for Python, to write with and to compare with."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pulsar
from support.pulsar.server import PulsarServer

READ_MS = 30_000
BEYOND_MS = 5_000
QUIET = logging.getLogger("pulsar.tests")
QUIET.setLevel(logging.CRITICAL)  # it would log each try to reach a broker that a test has stopped


@contextmanager
def a_client(server: PulsarServer, **how: Any) -> Iterator[pulsar.Client]:
    client = pulsar.Client(server.service_url, logger=QUIET, **how)
    try:
        yield client
    finally:
        client.close()


def send(server: PulsarServer, topic: str, *values: str, key: str | None = None) -> list[pulsar.MessageId]:
    """One message after the other, each an entry; their ids."""
    with a_client(server) as client:
        producer = client.create_producer(topic)
        return [producer.send(value.encode(), partition_key=key) for value in values]


def read(server: PulsarServer, topic: str, messages: int, **how: Any) -> list[bytes]:
    """So many messages from the start, and what there is beyond them."""
    with a_client(server) as client:
        reader = client.create_reader(topic, pulsar.MessageId.earliest, **how)
        values = [reader.read_next(timeout_millis=READ_MS).data() for _ in range(messages)]
        with suppress(pulsar.Timeout):  # brokers are known to announce messages that compaction has removed
            while reader.has_message_available():
                values.append(reader.read_next(timeout_millis=BEYOND_MS).data())
        return values
