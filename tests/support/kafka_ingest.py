"""A Spark session that has the Kafka connector, and ingests with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from lithify.spark.connector import connector_conf
from lithify.spark.session import session_factory
from support.jars import Module, fetched
from support.kafka_broker import KafkaBroker

COPIED_S = 120.0
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


def ingest_program(folder: Path, broker: KafkaBroker, *arguments: str) -> subprocess.Popen[bytes]:
    """`lithify kafka ingest --json` into `folder/lake`, in a session of its own. It prints to `out` and `err` there."""
    command = ["--warehouse", str(folder / "lake"), "kafka", "ingest", "--json", *arguments]
    command += ["--bootstrap-servers", broker.address, "--jars", str(connector_jars()), "--interval", "100ms"]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "lithify", *command],
            stdout=out,
            stderr=err,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )


def wait_for_batches(folder: Path, process: subprocess.Popen[bytes], batches: int) -> None:
    """Until the program has told of so many."""
    until_s = time.monotonic() + COPIED_S
    while (folder / "out").read_text().count("\n") < batches:
        assert process.poll() is None, (folder / "err").read_text()
        assert time.monotonic() < until_s, f"no {batches} batches: {(folder / 'err').read_text()}"
        time.sleep(0.05)
