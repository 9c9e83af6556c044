"""The memory of a gateway over a day's worth of jobs.

    python bench/gateway_memory.py [--rounds 1440] [--topics 20]

A real `lithify gateway run`, whose catalog is in SQLite, and whose events are followed all the while. Each step appends
records to one of the topics, has it compacted, reads it as Arrow, and asks for the overview. The memory is that of
the gateway's own process (`VmRSS`), without Spark's: `begin` after the first tenth of the steps, when all is warm, then
the largest of each further tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread

import lithify
from shown import shown

RECORDS = 1_000


class Client:
    """Requests to one gateway."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=600)

    def asked(self, method: str, path: str, body: bytes | None = None, **headers: str) -> bytes:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request(method, f"/api/v1{path}", body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status < 300, content
        return content

    def compact(self, topic: str) -> None:
        """Waits for the end: its events come until then."""
        events = self.asked("POST", f"/topics/{topic}/rounds", b"{}", Accept="text/event-stream")
        assert b'"state":"done"' in events.replace(b'": "', b'":"'), events


def body(step: int) -> bytes:
    """Records of some keys over and over."""
    return b"".join(
        b'{"key":"%d","value":"%b"}\n' % (number % 300, os.urandom(50).hex().encode()) for number in range(RECORDS)
    )


def follow(port: int) -> None:
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", "/api/v1/events")
    answer = connection.getresponse()
    while answer.readline():
        pass


def memory_mb(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) // 1024


def started(folder: str) -> tuple[subprocess.Popen[str], int]:
    """A gateway, and its port, once it answers."""
    command = [sys.executable, "-m", "lithify", "--warehouse", folder, "gateway", "run", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"127\.0\.0\.1:(\d+)", line):
            Thread(target=process.stdout.read, daemon=True).start()
            return process, int(found[1])
    raise SystemExit("the gateway has ended")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_440)
    parser.add_argument("--topics", type=int, default=20)
    asked = parser.parse_args()
    with shown(asked) as show, tempfile.TemporaryDirectory() as folder:
        lake = lithify.open(folder)
        for number in range(asked.topics):
            lake.create_topic(f"topic{number}")
        process, port = started(folder)
        Thread(target=follow, args=(port,), daemon=True).start()
        client, largest, tenth = Client(port), [0] * 10, max(1, asked.rounds // 10)
        begun = time.monotonic()
        for step in range(asked.rounds):
            topic = f"topic{step % asked.topics}"
            client.asked("POST", f"/topics/{topic}/records", body(step), Content_Type="application/x-ndjson")
            client.compact(topic)
            client.asked("GET", f"/topics/{topic}/table", Accept="application/vnd.apache.arrow.stream")
            json.loads(client.asked("GET", "/status"))
            at = min(step // tenth, 9)
            largest[at] = max(largest[at], memory_mb(process.pid))
        seconds = time.monotonic() - begun
        show(
            rounds=asked.rounds,
            topics=asked.topics,
            round_s=round(seconds / asked.rounds, 2),
            begin_mb=largest[0],
            tenths_mb=largest[1:],
        )
        process.terminate()
        process.wait(60)


if __name__ == "__main__":
    main()
