"""What `hydrate` and `publish` take for each record, against Kafka's own perf consumer: whole commands, in turns.

    PYTHONPATH=src:tests python bench/kafka_clients.py --records 2000000 --times 5

Starts its own broker, writes a topic of distinct keys, copies it into a lake in a temporary folder, and runs each
command in a process of its own. It prints records per CPU-second of that process and all that it starts, without the
broker, medians, and the median of the ratios to the perf consumer of the same turn.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import pyarrow as pa
from confluent_kafka import KafkaException

import lithify
from kafka_topics import held_topic, produce
from lithify.spark.session.java import find_java
from shown import add_publish, shown
from support.kafka.broker import MODULES, VERSION, KafkaBroker, a_broker  # type: ignore[import-not-found]
from support.kafka.jars import Module, fetched  # type: ignore[import-not-found]

APPENDED_AT_ONCE = 500_000
VALUE_BYTES = 200
TIMESTAMP_MS = 1_700_000_000_000
PERF_CONSUMER = "perf consumer"
TOOLS = Module("org.apache.kafka", "kafka-tools", VERSION, alone=True)


def batches(records: int) -> Iterator[pa.Table]:
    """Distinct keys, values that do not compress, in ascending offsets."""
    noise = os.urandom(VALUE_BYTES + 65536)
    for first in range(0, records, APPENDED_AT_ONCE):
        numbers = range(first, min(first + APPENDED_AT_ONCE, records))
        starts = [number * 7919 % 65536 for number in numbers]
        yield pa.table(
            {
                "partition": pa.array([0] * len(numbers), pa.int32()),
                "offset": pa.array(numbers, pa.int64()),
                "timestamp": pa.array([TIMESTAMP_MS + number for number in numbers]),
                "key": pa.array([b"%015d" % number for number in numbers], pa.binary()),
                "value": pa.array([noise[start : start + VALUE_BYTES] for start in starts], pa.binary()),
            }
        )


@dataclass(slots=True)
class Ways:
    """The commands, each with a fresh target. The lake `full` has the topic, the lake `empty` nothing of it."""

    broker: KafkaBroker
    folder: Path
    topic: str
    records: int
    _runs: int = field(default=0, init=False)

    def of_next_turn(self) -> Mapping[str, Sequence[str]]:
        self._runs += 1
        to = str(self.folder / f"{self._runs}-")
        servers = ["--bootstrap-servers", self.broker.address]
        return {
            PERF_CONSUMER: self._perf_consumer(),
            "hydrate to SQLite": self._verb("full", "hydrate", self.topic, "--to", f"{to}lake.db"),
            "hydrate to DuckDB": self._verb("full", "hydrate", self.topic, "--to", f"{to}lake.duckdb"),
            "kafka hydrate to SQLite, of what only Kafka has": self._verb(
                "empty", "kafka", "hydrate", self.topic, *servers, "--to", f"{to}kafka.db"
            ),
            "kafka publish": self._verb("full", "kafka", "publish", self.topic, *servers, "--to", f"to{self._runs}"),
        }

    def end_turn(self) -> None:
        """Deletes the targets."""
        for file in self.folder.glob(f"{self._runs}-*"):
            file.unlink()
        with suppress(KafkaException):
            self.broker.delete_topic(f"to{self._runs}")

    def _verb(self, lake: str, *arguments: str) -> Sequence[str]:
        return [sys.executable, "-m", "lithify", "--json", "--warehouse", str(self.folder / lake), *arguments]

    def _perf_consumer(self) -> Sequence[str]:
        jars = [fetched(f"kafka-{VERSION}", MODULES), fetched(f"kafka-tools-{VERSION}", [TOOLS])]
        command = [str(find_java().executable), "-cp", ":".join(f"{folder}/*" for folder in jars)]
        command += ["org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", self.broker.address]
        return [*command, "--topic", self.topic, "--num-records", str(self.records), "--group", f"perf{self._runs}"]


def cpu_seconds(command: Sequence[str], log: Path) -> float:
    """Of a process and all that it starts."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, log.read_text()
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Prints the medians at the end, and each turn on stderr."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="beginnings of the names of ways, beside the perf consumer")
    add_publish(parser)
    given = parser.parse_args()
    with shown(given) as show, a_broker(jvm=()) as broker, tempfile.TemporaryDirectory() as folder:
        name = held_topic(broker)
        produce(broker, name, batches(given.records))
        topic = lithify.open(f"{folder}/full").create_topic(name)
        for table in batches(given.records):
            topic.append(table, keep_offsets=True)
        lithify.open(f"{folder}/empty").create_topic(name)
        ways = Ways(broker, Path(folder), name, given.records)
        rates: dict[str, list[float]] = {}
        for _ in range(given.times):
            for way, command in ways.of_next_turn().items():
                if way == PERF_CONSUMER or not given.only or way.startswith(tuple(given.only)):
                    rate = given.records / cpu_seconds(command, Path(folder) / "log")
                    rates.setdefault(way, []).append(rate)
                    print(json.dumps({way: round(rate)}), file=sys.stderr, flush=True)
            ways.end_turn()
        theirs = rates[PERF_CONSUMER]
        for way, ours in rates.items():
            ratio = median(our / their for our, their in zip(ours, theirs, strict=True))
            show(way=way, records=given.records, records_per_cpu_s=round(median(ours)), ratio=round(ratio, 2))


if __name__ == "__main__":
    main()
