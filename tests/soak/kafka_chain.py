"""The whole way of a Kafka topic at once: written, copied, killed, compacted, and a client that starts from the lake.

    PYTHONPATH=tests python -m soak.kafka_chain [--records 1000000] [--seed 1]

Two topics of a real broker are written all the time, a plain one and one in transactions of which every
fifth is aborted. `lithify kafka ingest --continuous` copies both and is killed three times; after every
kill `lithify compact` runs. A client is filled from the lake and goes on live while the producers do. In
the end its tables must be those of consumers that read all of Kafka. Exits with 1 if they are not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import lithify
from lithify.kafka import SnapshotConsumer
from lithify.model.record import Record
from support.kafka.broker import KafkaBroker, a_broker, read_all
from support.kafka.ingest import COPIED_S, ingest_program, wait_for_batches
from support.processes.programs import end

KILLS = 3
KEYS = 50_000
PARTITIONS = 2
TOPICS = ("plain", "transactional")
PACE_S = 0.05
WRITTEN_IN_S = 120
TOMBSTONES = 50
"""One record of so many."""


@dataclass(slots=True)
class Feed:
    """Producers that go on until they are asked to stop, and for `records` of the plain topic at least."""

    broker: KafkaBroker
    records: int
    sent: dict[str, int] = field(default_factory=dict)
    done: Event = field(default_factory=Event)
    threads: list[Thread] = field(default_factory=list)

    def start(self) -> None:
        self.threads = [Thread(target=self._plain), Thread(target=self._transactional)]
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.done.set()
        for thread in self.threads:
            thread.join()

    @property
    def has_written_enough(self) -> bool:
        return self.sent.get("plain", 0) >= self.records

    def _plain(self) -> None:
        producer, luck, n = self.broker.producer(compression_type="lz4"), random.Random(1), 0
        at_once = max(1, round(self.records * PACE_S / WRITTEN_IN_S))
        while not self.done.is_set():
            for _ in range(at_once):
                value = None if n % TOMBSTONES == 0 else b"value %d " % n + luck.randbytes(80)
                producer.produce("plain", value, b"key-%d" % luck.randrange(KEYS))
                n += 1
            producer.flush()
            self.sent["plain"] = n
            self.done.wait(PACE_S)

    def _transactional(self) -> None:
        producer, luck, n = self.broker.producer(transactional_id="chain"), random.Random(2), 0
        producer.init_transactions()
        while not self.done.is_set():
            producer.begin_transaction()
            for _ in range(100):
                producer.produce("transactional", b"value %d" % n, b"key-%d" % luck.randrange(KEYS // 10))
                n += 1
            (producer.abort_transaction if n % 500 == 0 else producer.commit_transaction)()
            self.sent["transactional"] = n
            self.done.wait(PACE_S)


def killed_again_and_again(folder: Path, broker: KafkaBroker, luck: random.Random) -> None:
    for number in range(KILLS):
        process = started(folder, broker)
        wait_for_batches(folder, process, luck.randint(2, 20))
        time.sleep(luck.random())
        end(process)
        process.wait(timeout=30)
        for topic in TOPICS:
            command = [sys.executable, "-m", "lithify", "--warehouse", str(folder / "lake"), "compact", topic, "--json"]
            ran = subprocess.run(command, check=True, stdout=subprocess.PIPE)
            (report,) = (json.loads(line) for line in ran.stdout.splitlines() if line.startswith(b"{"))
            print(json.dumps({"kill": number + 1, "compacted": topic, "version": report["version"]}), flush=True)


def started(folder: Path, broker: KafkaBroker) -> subprocess.Popen[bytes]:
    return ingest_program(folder, broker, "--continuous", "--topic", TOPICS[0], "--topic", TOPICS[1])


def timed(what: Callable[[], object]) -> float:
    begun = time.monotonic()
    what()
    return round(time.monotonic() - begun, 2)


def table_of_kafka(broker: KafkaBroker, topic: str) -> dict[bytes, bytes]:
    """What a consumer of committed records that reads all of it has in the end."""
    table: dict[bytes, bytes] = {}
    for partition in range(PARTITIONS):
        for message in read_all(broker, topic, partition):
            if message.value() is None:
                table.pop(message.key(), None)
            else:
                table[message.key()] = message.value()
    return table


def chain(folder: Path, broker: KafkaBroker, records: int, seed: int) -> bool:
    for topic in TOPICS:
        broker.make_topic(PARTITIONS, topic, cleanup_policy="compact")
    feed, lake = Feed(broker, records), lithify.open(str(folder / "lake"))
    feed.start()
    try:
        killed_again_and_again(folder, broker, random.Random(seed))
        process = started(folder, broker)
        wait_for_batches(folder, process, 10)
        while not feed.has_written_enough:
            time.sleep(PACE_S)
        consumers = {t: SnapshotConsumer(lake.topic(t), {"bootstrap.servers": broker.address}) for t in TOPICS}
        tables: dict[str, dict[bytes, Record]] = {topic: {} for topic in TOPICS}
        for topic in TOPICS:
            took_s = timed(lambda topic=topic: consumers[topic].fill(tables[topic]))  # type: ignore[misc]
            print(json.dumps({"filled": topic, "s": took_s, "keys": len(tables[topic])}), flush=True)
        os.kill(process.pid, signal.SIGTERM)  # while records come
        status = process.wait(timeout=COPIED_S)
        print(json.dumps({"ingest_ended_with": status, "said": (folder / "err").read_text()[-500:]}), flush=True)
    finally:
        feed.stop()
    equal = True
    for topic in TOPICS:
        consumers[topic].fill(tables[topic])
        consumers[topic].close()
        whole: dict[bytes, bytes] = {}
        took_s = timed(lambda whole=whole, topic=topic: whole.update(table_of_kafka(broker, topic)))  # type: ignore[misc]
        same = {key: record.value for key, record in tables[topic].items()} == whole
        equal &= same
        told = {"topic": topic, "sent": feed.sent[topic], "keys": len(whole), "all_of_kafka_s": took_s, "equal": same}
        print(json.dumps(told), flush=True)
    return equal and status == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="chain") as folder, a_broker() as broker:
        return 0 if chain(Path(folder), broker, asked.records, asked.seed) else 1


if __name__ == "__main__":
    sys.exit(main())
