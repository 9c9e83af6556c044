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
from pathlib import Path

import lithify
from lithify.kafka import SnapshotConsumer
from lithify.model.record import Record
from soak.kafka.feed import PACE_S, PARTITIONS, TOPICS, Feed, table_of_kafka
from support.kafka.broker import KafkaBroker, a_broker
from support.kafka.ingest import COPIED_S, ingest_program, wait_for_batches
from support.processes.programs import end

KILLS = 3


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
