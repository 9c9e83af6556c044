"""Clients that nobody here wrote log in to a gateway by each mechanism: Kafka's own for Java, and aiokafka.

librdkafka does so in `tests/gateway/test_kafka_listener.py`, by TLS and with tokens of a database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import AuthenticationFailedError, KafkaConnectionError
from pyspark.sql import SparkSession

from lithify import Record
from lithify.kafka_server.requests.context import Known
from lithify.model.access.scram import scram_keys
from lithify.testing import memory_lake
from support.kafka.served import Everyone, OpenLogins, ServedLake, serving_kafka

ID = "00000000000000aa"
TOKEN = f"lithify_{ID}_{'5' * 64}"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def served() -> Iterator[ServedLake]:
    lake, alice, keys = memory_lake(), Everyone("alice"), scram_keys(ID, TOKEN)
    lake.create_topic("shop/orders", 1).append([Record(b"k", b"v")])
    logins = OpenLogins(None, {TOKEN: alice}, {ID: lambda mechanism: Known(alice, keys.of(mechanism))})
    with serving_kafka(lake, logins) as one:
        yield one


def by_aiokafka(served: ServedLake, mechanism: str, password: str) -> set[str]:
    """The topics that it is told of."""

    async def topics() -> set[str]:
        login = {"sasl_mechanism": mechanism, "sasl_plain_username": ID, "sasl_plain_password": password}
        consumer = AIOKafkaConsumer(bootstrap_servers=served.bootstrap, security_protocol="SASL_PLAINTEXT", **login)
        try:
            await consumer.start()
            return await consumer.topics()
        finally:
            await consumer.stop()

    return asyncio.run(topics())


def by_java(session: SparkSession, served: ServedLake, mechanism: str, password: str) -> set[str]:
    jvm: Any = session._jvm
    kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    module = f"org.apache.kafka.common.security.{kind}LoginModule"
    settings = jvm.java.util.HashMap()
    for name, value in {
        "bootstrap.servers": served.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="lithify_{ID}" password="{password}";',
        "key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
        "value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    }.items():
        settings.put(name, value)
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
    try:
        return {*consumer.listTopics(jvm.java.time.Duration.ofSeconds(30)).keySet()}
    finally:
        consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka_logs_in(served, mechanism):
    assert by_aiokafka(served, mechanism, TOKEN) == {"shop.orders"}
    with pytest.raises((AuthenticationFailedError, KafkaConnectionError)):
        by_aiokafka(served, mechanism, f"{TOKEN[:-1]}6")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafkas_own_client_logs_in(served, session, mechanism):
    assert by_java(session, served, mechanism, TOKEN) == {"shop.orders"}
    wrong = "the password is not a valid token" if mechanism == "PLAIN" else "the user is not the id of a token"
    with pytest.raises(Exception, match=wrong):
        by_java(session, served, mechanism, f"{TOKEN[:-1]}6")
