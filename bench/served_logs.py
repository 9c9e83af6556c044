"""What a gateway takes to serve a topic to a client of Kafka: from files, and from memory.

    PYTHONPATH=src:tests python bench/served_logs.py --records 1000000 --times 5 [--data FOLDER] [--publish]

confluent-kafka reads a topic from its start to its end. The server runs in a process of its own, without the rest of a
gateway, and with what a gateway keeps in memory. Each time there are two servers:

    one               reads `orders` from files: its first topic; then `payments` from files, which is as large
    one with room     reads `orders` twice: the second time from memory

The first topic pays for what a process does once: the code of Arrow and of the lake is loaded, and memory is touched
first. The processor time of the server's process is told, and its memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

import lithify
from lithify.kafka_server.logs.parts import KEPT_BYTES
from shown import add_publish, shown

APPENDED_AT_ONCE = 250_000
VALUE_BYTES, KEYS, TIMESTAMP_MS = 200, 300_000, 1_700_000_000_000
TOPICS = ("orders", "payments")
KEPT_MIB = KEPT_BYTES // 2**20
FIRST, OTHER, MEMORY = "files, first topic of a process", "files, another topic", "memory"
SERVER = """
import json, sys
import lithify
from lithify.kafka_server.logs import parts
from lithify.kafka_server.logs.allocator import use_small_pages
from support.kafka.served import serving_kafka

use_small_pages()
parts.Parts.__init__.__defaults__ = (int(sys.argv[2]) * 2**20, *parts.Parts.__init__.__defaults__[1:])
with serving_kafka(lithify.open(sys.argv[1])) as served:
    print(json.dumps({"port": served.address[1]}), flush=True)
    sys.stdin.read()
"""


def write(folder: str, name: str, records: int) -> None:
    """A topic of keys that come again, and of values of which half can be compressed."""
    topic, random = lithify.open(folder).create_topic(name, 1), np.random.default_rng(1)
    for start in range(0, records, APPENDED_AT_ONCE):
        count = min(APPENDED_AT_ONCE, records - start)
        noise = random.integers(0, 256, (count, VALUE_BYTES // 2), np.uint8)
        text = np.broadcast_to(np.frombuffer(b"the quick brown fox " * 5, np.uint8), noise.shape)
        ends = pa.py_buffer(np.arange(0, (count + 1) * VALUE_BYTES, VALUE_BYTES, dtype=np.int32))
        values = pa.py_buffer(np.concatenate([noise, text], axis=1).tobytes())
        columns = {
            "key": pa.array([b"key-%08d" % key for key in random.integers(0, KEYS, count)]),
            "value": pa.Array.from_buffers(pa.binary(), count, [None, ends, values]),
            "timestamp": pa.array(TIMESTAMP_MS + np.arange(start, start + count)),
        }
        topic.append(pa.table(columns))


@contextmanager
def served(folder: str, kept_mib: int) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: the process, and its port. Its code is compiled, as that of a package is."""
    command = [sys.executable, "-c", SERVER, folder, str(kept_mib)]
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=compiled) as process:
        assert process.stdin is not None and process.stdout is not None
        yield process.pid, json.loads(process.stdout.readline())["port"]
        process.stdin.close()


def cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024)


def read(port: int, name: str, records: int) -> None:
    """All of a topic, by a new client."""
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(name, 0, 0)])
    count = 0
    while count < records:
        for record in consumer.consume(10_000, 30):
            assert record.error() is None, record.error()
            count += 1
    consumer.close()


def reads(folder: str, kept_mib: int, names: Sequence[str], records: int) -> list[dict[str, Any]]:
    """What each of these took of a new server, one after the other."""
    rows = []
    with served(folder, kept_mib) as (process, port):
        for name in names:
            before, begun = cpu_s(process), time.monotonic()
            read(port, name, records)
            took = {"cpu_s": cpu_s(process) - before, "seconds": time.monotonic() - begun}
            rows.append({**took, "peak_mib": peak_mib(process)})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--data", help="keeps the topics there, or finds them there")
    add_publish(parser)
    asked = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {FIRST: [], OTHER: [], MEMORY: []}
    with shown(asked) as show, nullcontext(asked.data) if asked.data else tempfile.TemporaryDirectory() as folder:
        if not (Path(folder) / "default").exists():
            for name in TOPICS:
                write(folder, name, asked.records)
        room = 2 * asked.records * VALUE_BYTES // 2**20
        for _ in range(asked.times):
            for what, row in zip((FIRST, OTHER), reads(folder, KEPT_MIB, TOPICS, asked.records), strict=True):
                found[what].append(row)
            found[MEMORY].append(reads(folder, room, (TOPICS[0],) * 2, asked.records)[1])
        for what, rows in found.items():
            all_cpu_s = sorted(row["cpu_s"] for row in rows)
            show(
                read_from=what,
                records=asked.records,
                cpu_s=round(median(all_cpu_s), 2),
                least_cpu_s=round(all_cpu_s[0], 2),
                most_cpu_s=round(all_cpu_s[-1], 2),
                seconds=round(median(row["seconds"] for row in rows), 1),
                peak_mib=max(row["peak_mib"] for row in rows),
            )


if __name__ == "__main__":
    main()
