"""A Spark session that has the Kafka connector, and ingests with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from lithify.spark.connector import connector_conf
from lithify.spark.session import session_factory
from support.jars import Module, fetched

CONNECTOR = (
    Module("org.apache.spark", "spark-sql-kafka-0-10_2.13", pyspark.__version__, alone=True),
    # Of a version that the repository has: 4.2.0 of this one is not published everywhere.
    Module("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", alone=True),
    Module("org.apache.kafka", "kafka-clients", "3.9.2", alone=True),
    Module("org.apache.commons", "commons-pool2", "2.13.1", alone=True),
)


def connector_jars() -> Path:
    """A folder with the jars, as `--jars` takes it."""
    return fetched(f"spark-kafka-{pyspark.__version__}", CONNECTOR)


def kafka_session(conf: Mapping[str, str] | None = None) -> SparkSession:
    return session_factory(None, {**connector_conf(str(connector_jars())), **(conf or {})})()
