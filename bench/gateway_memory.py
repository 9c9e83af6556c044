"""The memory of a gateway over a day's worth of jobs.

    python bench/gateway_memory.py [--rounds 1440] [--topics 20]

A real `lithify gateway run`, whose catalog is in SQLite, and whose events are followed all the while. Each step appends
records to one of the topics, has it compacted, reads it as Arrow, and asks for the overview. The memory is that of
the gateway's own process, without Spark's: the largest of each tenth of the steps.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time

import lithify
from real_gateway import a_gateway
from shown import add_publish, shown

RECORDS, KEYS = 1_000, 300
ARROW = "application/vnd.apache.arrow.stream"


def lines() -> bytes:
    """Records of some keys, over and over."""
    values = (os.urandom(50).hex() for _ in range(RECORDS))
    return b"".join(b'{"key":"%d","value":"%b"}\n' % (n % KEYS, value.encode()) for n, value in enumerate(values))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_440)
    parser.add_argument("--topics", type=int, default=20)
    add_publish(parser)
    asked = parser.parse_args()
    with shown(asked) as show, tempfile.TemporaryDirectory() as folder:
        lake = lithify.open(folder)
        for number in range(asked.topics):
            lake.create_topic(f"topic{number}")
        with a_gateway(folder) as gateway:
            gateway.follow()
            tenth, begun, largest_mb = max(1, asked.rounds // 10), time.monotonic(), 0
            for step in range(1, asked.rounds + 1):
                topic = f"topic{step % asked.topics}"
                gateway.append(topic, lines())
                gateway.compact(topic)
                gateway.asked("GET", f"/topics/{topic}/table", Accept=ARROW)
                json.loads(gateway.asked("GET", "/status"))
                largest_mb = max(largest_mb, gateway.memory_mb())
                if step % tenth == 0:
                    step_s = (time.monotonic() - begun) / tenth
                    show(rounds=step, topics=asked.topics, round_s=round(step_s, 2), largest_mb=largest_mb)
                    begun, largest_mb = time.monotonic(), 0


if __name__ == "__main__":
    main()
