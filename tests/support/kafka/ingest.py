"""A Spark session that has the Kafka connector, and ingests with it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from lithify.api.lake import Lake
from lithify.reports.ingest import IngestReport
from lithify.spark.kafka.connector import connector_conf
from lithify.spark.session.launch import JAVA_OPTIONS
from lithify.spark.session.start import session_factory
from support.kafka.broker import KafkaBroker, read_all
from support.kafka.jars import Module, fetched
from support.processes.programs import PROGRAM, SHORT_LIVED
from support.servers.tcp_proxy import TcpProxy

COPIED_S = 120.0
SOON = {"default.api.timeout.ms": "3000", "request.timeout.ms": "2000"}
"""For clients that are to give up before long."""
QUICKLY = {JAVA_OPTIONS: " ".join(SHORT_LIVED)}
"""For sessions of tests. Those with the connector have Java's default otherwise, which is for long copies."""
CONNECTOR = (
    Module("org.apache.spark", "spark-sql-kafka-0-10_2.13", pyspark.__version__, alone=True),
    # Of a version that the repository has: 4.2.0 of this one is not published everywhere.
    Module("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0", alone=True),
    Module("org.apache.kafka", "kafka-clients", "3.9.2", alone=True),
    Module("org.apache.commons", "commons-pool2", "2.13.1", alone=True),
)


@dataclass(frozen=True, slots=True)
class KafkaCopy:
    """A topic of a broker, and `copy`, which it is ingested into."""

    lake: Lake
    broker: KafkaBroker
    session: SparkSession
    topic: str
    conf: Mapping[str, str] = field(default_factory=dict)

    def ingest(self, **how: Any) -> IngestReport:
        (report,) = self.lake.ingest(self.kafka, [self.topic], into="copy", spark=self.session, **how)
        return report

    @property
    def kafka(self) -> dict[str, str]:
        return {"bootstrap.servers": self.broker.address, **self.conf}

    def produce(self, first: int, last: int, *, codec: str = "none", **more: Any) -> None:
        """Records of three kinds: with headers, tombstones, plain ones."""
        producer = self.broker.producer(compression_type=codec)
        for n in range(first, last):
            headers = [("a", b"\x00\xff"), ("a", None), ("b", b"")] if n % 3 == 0 else []
            value = None if n % 5 == 0 else b"value %d \xff" % n
            producer.produce(self.topic, key=b"k%d" % (n % 7), value=value, headers=headers, **more)
        producer.flush()

    def check_equal(self) -> None:
        """The copy has what a reader of committed records gets from Kafka, and nothing else."""
        copy = self.lake.topic("copy")
        for partition in range(copy.info().partitions):
            mine = [
                (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, r.headers) for r in copy.reader(partition)
            ]
            theirs = [
                (m.offset(), m.timestamp()[1], _TYPES[m.timestamp()[0]], m.key(), m.value(), tuple(m.headers() or ()))
                for m in read_all(self.broker, self.topic, partition)
            ]
            assert mine == theirs


_TYPES = {1: "CreateTime", 2: "LogAppendTime"}


def connector_jars() -> Path:
    """A folder with the jars, as `--jars` takes it."""
    return fetched(f"spark-kafka-{pyspark.__version__}", CONNECTOR)


def kafka_session(conf: Mapping[str, str] | None = None) -> SparkSession:
    return session_factory(None, connector_conf(str(connector_jars()), conf))()


def ingest_program(folder: Path, broker: KafkaBroker | TcpProxy, *arguments: str) -> subprocess.Popen[bytes]:
    """`lithify kafka ingest --json` into `folder/lake`, in a session of its own. It prints to `out` and `err` there."""
    command = [
        "--warehouse",
        str(folder / "lake"),
        *ingest_command(broker, "--json", "--interval", "100ms", *arguments),
    ]
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        return subprocess.Popen([*PROGRAM, *command], stdout=out, stderr=err, start_new_session=True)


def alive(group: int) -> bool:
    """Whether a program that was started, or anything that it has started in its process group, still runs."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def ingest_command(broker: KafkaBroker | TcpProxy | None, *arguments: str) -> list[str]:
    """What `lithify` is called with to ingest from the broker; without one `arguments` have its address."""
    servers = [] if broker is None else ["--bootstrap-servers", broker.address]
    command = ["kafka", "ingest", *servers, "--jars", str(connector_jars()), *arguments]
    return command + [word for name, value in QUICKLY.items() for word in ("--spark-conf", f"{name}={value}")]


def wait_for_batches(folder: Path, process: subprocess.Popen[bytes], batches: int) -> None:
    """Until the program has reported so many."""
    until_s = time.monotonic() + COPIED_S
    while (folder / "out").read_text().count("\n") < batches:
        assert process.poll() is None, (folder / "err").read_text()
        assert time.monotonic() < until_s, f"no {batches} batches: {(folder / 'err').read_text()}"
        time.sleep(0.05)
