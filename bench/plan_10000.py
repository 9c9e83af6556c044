"""How long planning takes on a topic of 10,000 segments.

    python bench/plan_10000.py

The target is 2 seconds. It times the plan in a process that has just opened the warehouse (cold),
the same once more (warm), `status`, and the whole command `lithify compact --plan`. Real appends
create the topic, which takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import lithify

RECORDS_PER_SEGMENT = 4


def fill(topic: lithify.Topic, partitions: int, appends: int) -> None:
    """Appends that each add one segment to every partition; keys repeat, so any segment can have losers."""
    chance = np.random.default_rng(1)
    numbers = np.repeat(np.arange(partitions, dtype=np.int32), RECORDS_PER_SEGMENT)
    for _ in range(appends):
        keys = [b"key-%08d" % key for key in chance.integers(0, 1_000_000, len(numbers))]
        topic.append(pa.table({"partition": numbers, "key": pa.array(keys, pa.binary()), "value": keys}))


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return round(time.perf_counter() - begun, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description="Times planning.")
    parser.add_argument("--segments", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=10)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        making = timed(
            lambda: fill(
                lithify.open(folder + "/lake").create_topic("wide", asked.partitions),
                asked.partitions,
                asked.segments // asked.partitions,
            )
        )
        topic = lithify.open(folder + "/lake").topic("wide")
        figures = {"making": making, "plan_cold": timed(topic.plan), "plan_warm": timed(topic.plan)}
        figures["status"] = timed(topic.status)
        program = [str(Path(sys.executable).parent / "lithify"), "--warehouse", folder + "/lake"]
        command = [*program, "compact", "wide", "--plan", "--json"]
        figures["command"] = timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
        segments = sum(log.segments_in for log in topic.plan().logs)
    print(json.dumps({"segments": segments, "partitions": asked.partitions, "seconds": figures}))


if __name__ == "__main__":
    main()
