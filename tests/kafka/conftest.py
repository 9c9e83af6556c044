"""One broker and one Spark session for all tests of a process; every test has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pyspark.sql import SparkSession

from support.kafka.broker import KafkaBroker, a_broker_behind_a_proxy
from support.kafka.ingest import QUICKLY, kafka_session
from support.kafka.lake import send
from support.kafka.readers import WAIT_S, Row, by_confluent, some_records
from support.kafka.secured import SecuredBroker, a_secured_broker
from support.kafka.tools import KafkaJvm, a_kafka_jvm
from support.servers.tcp_proxy import TcpProxy


@pytest.fixture(scope="session")
def behind() -> Iterator[tuple[KafkaBroker, TcpProxy]]:
    """The broker, and a way to it that can be cut."""
    with a_broker_behind_a_proxy() as both:
        yield both


@pytest.fixture(scope="session")
def broker(behind: tuple[KafkaBroker, TcpProxy]) -> KafkaBroker:
    """By its own address."""
    return behind[0]


@pytest.fixture(scope="session")
def session(on_cluster: Mapping[str, str]) -> Iterator[SparkSession]:
    session = kafka_session({**QUICKLY, **on_cluster})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def secured() -> Iterator[SecuredBroker]:
    """With TLS, passwords and rights."""
    with a_secured_broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def in_kafka(broker: KafkaBroker) -> list[Row]:
    """`some_records` in `shop.orders` of the broker, as librdkafka gets them there."""
    topic = broker.make_topic(2, "shop.orders", retention_ms="-1")
    producer = broker.producer(enable_idempotence=True)  # or what is sent again comes late
    send(producer, topic, some_records())
    assert producer.flush(WAIT_S) == 0
    return by_confluent(broker.address, topic)


@pytest.fixture(scope="session")
def kafka_jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaJvm]:
    """With Kafka's own programs and clients."""
    with a_kafka_jvm(tmp_path_factory.mktemp("kafka-jvm")) as jvm:
        yield jvm
