"""Finds the broker that owns a topic, as Pulsar's clients do.

service URL ─► LOOKUP ─► redirect: ask there, at most so often
                     └─► owner: connect to it, or through the proxy that the service URL names
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from lithify.errors import BrokerError
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar.client.commands_pb2 import CommandLookupTopicResponse
from lithify.pulsar.client.config import ClientConfig, address_of
from lithify.pulsar.client.connection import Connection, command
from lithify.pulsar.client.names import checked_count

REDIRECTS_AT_MOST: Final = 20
REDIRECT: Final = 0

T = TypeVar("T")


def at_any(config: ClientConfig, ask: Callable[[Connection], T]) -> T:
    """What `ask` returns for a connection to the first address of the service URL that answers."""
    *others, last = config.addresses()
    for address in others:
        try:
            with Connection(config, address) as connection:
                return ask(connection)
        except TransientBrokerError:
            continue
    with Connection(config, last) as connection:
        return ask(connection)


def owner_of(config: ClientConfig, topic: str) -> Connection:
    """A connection to the broker that has the topic, or one partition. Raises `UnknownSourceError`, `BrokerError`."""
    address, broker = at_any(config, lambda connection: _owner_address(config, connection, topic))
    return Connection(config, address, broker)


def partitions_of(config: ClientConfig, topic: str) -> int:
    """0: the topic is not partitioned. Creates none. Raises `UnknownSourceError`, `BrokerError`."""

    def ask(connection: Connection) -> int:
        asked = command("partition_metadata")
        asked.partition_metadata.topic = topic
        asked.partition_metadata.request_id = connection.new_request()
        asked.partition_metadata.metadata_auto_creation_enabled = False
        return checked_count(topic, connection.request(asked, topic).partition_metadata_response.partitions)

    return at_any(config, ask)


def _owner_address(config: ClientConfig, first: Connection, topic: str) -> tuple[tuple[str, int], str]:
    """Where to connect to, and for a proxy the broker behind it."""
    answer = _asked(first, topic, authoritative=False)
    for _ in range(REDIRECTS_AT_MOST):
        url = answer.broker_service_url_tls if config.uses_tls else answer.broker_service_url
        if not url:
            kind = "with TLS" if config.uses_tls else "without TLS"
            raise BrokerError(f"{topic}: the broker that serves it does not accept connections {kind}")
        host, port = address_of(url)
        address, broker = (
            ((host, port), "") if not answer.proxy_through_service_url else (first.address, f"{host}:{port}")
        )
        if answer.response != REDIRECT:
            return address, broker
        with Connection(config, address, broker) as next_one:
            answer = _asked(next_one, topic, authoritative=answer.authoritative)
    raise BrokerError(f"{topic}: more than {REDIRECTS_AT_MOST} brokers redirected to another one")


def _asked(connection: Connection, topic: str, *, authoritative: bool) -> CommandLookupTopicResponse:
    asked = command("lookup_topic")
    asked.lookup_topic.topic = topic
    asked.lookup_topic.request_id = connection.new_request()
    asked.lookup_topic.authoritative = authoritative
    return connection.request(asked, topic).lookup_topic_response
