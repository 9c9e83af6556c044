"""One broker and one Spark session for all tests of the section; every test has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.kafka.broker import KafkaBroker, a_broker
from support.kafka.ingest import kafka_session


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    with a_broker() as running:
        yield running


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    session = kafka_session()
    yield session
    session.stop()
