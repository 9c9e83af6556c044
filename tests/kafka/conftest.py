"""One broker and one Spark session for all tests of a process; every test has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from pyspark.sql import SparkSession

from support.kafka.broker import KafkaBroker, a_broker_behind_a_proxy
from support.kafka.ingest import QUICKLY, kafka_session
from support.kafka.secured import SecuredBroker, a_secured_broker
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
