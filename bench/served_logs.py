"""What a gateway takes to serve a topic to a client of Kafka: first from files, then from memory.

    PYTHONPATH=src:tests python bench/served_logs.py --records 1000000 --times 3 [--data FOLDER]

The server runs in a process of its own, without the rest of a gateway. confluent-kafka reads the topic from its start
to its end, again and again. Each time begins with what a new server has in memory, and the topic is read twice. With
`--kept` MiB the server keeps so much of it in memory. Its processor time is told, and the memory of its process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition

import lithify

APPENDED_AT_ONCE = 250_000
VALUE_BYTES, KEYS, TIMESTAMP_MS = 200, 300_000, 1_700_000_000_000
SERVER = """
import json, sys
import lithify
from lithify.kafka_server.logs import parts
from support.kafka.served import serving_kafka

parts.Parts.__init__.__defaults__ = (int(sys.argv[2]) * 2**20, *parts.Parts.__init__.__defaults__[1:])
with serving_kafka(lithify.open(sys.argv[1])) as served:
    print(json.dumps({"port": served.address[1]}), flush=True)
    sys.stdin.read()
"""


def write(folder: str, records: int) -> None:
    """A topic of keys that come again, and of values of which half can be compressed."""
    topic, random = lithify.open(folder).create_topic("orders", 1), np.random.default_rng(1)
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
def served(folder: str, kept_mb: int) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: the process, and its port."""
    command = [sys.executable, "-c", SERVER, folder, str(kept_mb)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        yield process.pid, json.loads(process.stdout.readline())["port"]
        process.stdin.close()


def cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(process: int, name: str) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024)


def read(port: int, records: int) -> None:
    """All of the topic, by a new client."""
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", 0, 0)])
    count = 0
    while count < records:
        for record in consumer.consume(10_000, 30):
            assert record.error() is None, record.error()
            count += 1
    consumer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--kept", type=int, default=512, help="MiB of batches that the server keeps")
    parser.add_argument("--data", help="keeps the topic there, or finds it there")
    asked = parser.parse_args()
    with nullcontext(asked.data) if asked.data else tempfile.TemporaryDirectory() as folder:
        if not (Path(folder) / "default").exists():
            write(folder, asked.records)
        for _ in range(asked.times):
            with served(folder, asked.kept) as (process, port):
                for what in ("files", "memory"):
                    before, begun = cpu_s(process), time.monotonic()
                    read(port, asked.records)
                    row = {"cpu_s": round(cpu_s(process) - before, 2), "s": round(time.monotonic() - begun, 2)}
                    peak = memory_mb(process, "VmHWM")
                    row |= {"resident_mb": memory_mb(process, "VmRSS"), "peak_mb": peak}
                    print(json.dumps({"from": what} | row), flush=True)


if __name__ == "__main__":
    main()
