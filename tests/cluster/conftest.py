"""One cluster, one session on it and one broker for all tests of the section."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from support.kafka.broker import KafkaBroker, a_broker
from support.kafka.ingest import QUICKLY, kafka_session
from support.servers.spark_cluster import SparkCluster, a_cluster

RACING = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "100ms",
}
"""Tasks are tried twice at once as soon as one is a little slower than others."""
WATCHED = {"spark.ui.liveUpdate.period": "0"}
"""The status tracker knows at once that a task runs or has failed: by default it may not know until a stage ends."""


@pytest.fixture(scope="session")
def cluster() -> Iterator[SparkCluster]:
    with a_cluster() as running:
        yield running


@pytest.fixture(scope="session")
def session(cluster: SparkCluster) -> Iterator[SparkSession]:
    session = kafka_session({**cluster.conf, **RACING, **WATCHED, **QUICKLY})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    with a_broker() as running:
        yield running
