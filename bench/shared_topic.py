"""One topic of many partitions, all due, compacted by 1, 2 and 4 cleaners at once.

    python bench/shared_topic.py [--partitions 1000] [--records 2000] [--cleaners 1 2 4]

Each cleaner is a process of its own, `lithify cleaner run`, on one core of the machine as if it were a machine of its
own: so only as many as there are cores can be faster than one. All are there when the topic is written. It prints, for
each number of cleaners, the time from the commit of the records to the last round (with the start of Spark), that of
the runs alone, and how many logs and runs each cleaner did.
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
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lithify
from shown import add_publish, shown

KEYS = 200
SEEN_S = 6.0
"""Until cleaners have seen each other: they read the leases six times in a lease of 30 s."""


def feed(topic: lithify.Topic, partitions: int, records: int) -> None:
    number = np.arange(partitions * records)
    keys = [b"%d" % key for key in range(KEYS)]
    columns = {
        "partition": pa.array(number // records, pa.int32()),
        "key": pa.array(keys, pa.binary()).take(pa.array(number % records % KEYS)),
        "value": pa.array([b"v" * 100], pa.binary()).take(pa.array(np.zeros_like(number))),
    }
    topic.append(pa.table(columns))


@contextmanager
def cleaners_of(directory: str, count: int) -> Iterator[list[Path]]:
    """Cleaners that know of each other; the files of their events."""
    command = [
        sys.executable,
        "-m",
        "lithify",
        "cleaner",
        "run",
        "--json",
        "--interval",
        "1s",
        "--spark-conf",
        "spark.master=local[1]",
        "--warehouse",
        directory,
    ]
    outputs = [Path(directory, f"events-{number}") for number in range(count)]
    processes = []
    try:
        for number, output in enumerate(outputs):
            with output.open("w") as events:
                process = subprocess.Popen([*command, "--id", f"c{number}"], stdout=events)
                os.sched_setaffinity(process.pid, {number % (os.cpu_count() or 1)})
                processes.append(process)
        while not all(output.stat().st_size for output in outputs):
            time.sleep(0.2)
        time.sleep(SEEN_S)
        yield outputs
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def rounds_of(events: Path) -> list[dict[str, Any]]:
    return [event for event in map(json.loads, events.read_text().splitlines()) if event["event"] == "round"]


def measure(count: int, partitions: int, records: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        topic = lithify.open(directory).create_topic("shared", partitions)
        with cleaners_of(directory, count) as outputs:
            feed(topic, partitions, records)
            begun = time.time()
            rounds: list[list[dict[str, Any]]] = []
            while sum(len(event["partitions"]) for events in rounds for event in events) < partitions:
                time.sleep(0.5)
                rounds = [rounds_of(output) for output in outputs]
        assert topic.info().records == partitions * min(records, KEYS), topic.info()
    ends = [(datetime.fromisoformat(event["time"]).timestamp(), event) for events in rounds for event in events]
    ended, started = max(at for at, _ in ends), min(at - event["duration_ms"] / 1000 for at, event in ends)
    return {
        "cleaners": count,
        "whole_s": round(ended - begun, 1),
        "rounds_s": round(ended - started, 1),
        "logs_of_each": [sum(len(event["partitions"]) for event in events) for events in rounds],
        "runs_of_each": [len(events) for events in rounds],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--records", type=int, default=2_000)
    parser.add_argument("--cleaners", type=int, nargs="+", default=[1, 2, 4])
    add_publish(parser)
    flags = parser.parse_args()
    with shown(flags) as show:
        for cleaners in flags.cleaners:
            show(**measure(cleaners, flags.partitions, flags.records))


if __name__ == "__main__":
    main()
