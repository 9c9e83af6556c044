"""One topic of many partitions, all due, compacted by 1, 2 and 4 cleaners at once.

    python bench/shared_topic.py [--partitions 1000] [--records 1000] [--cleaners 1 2 4]

Each cleaner is a process of its own, `lithify cleaner run`; all are there when the topic is written. It prints, for
each number of cleaners, the time from the commit of the records to the last round, with the start of Spark, and how
many logs and runs each cleaner did.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import lithify

KEYS = 200
SEEN_S = 6.0
"""Until cleaners have seen each other: they read the leases six times in a lease of 30 s."""


def feed(topic: lithify.Topic, partitions: int, records: int) -> None:
    value = b"v" * 100
    topic.append(
        [
            lithify.Record(key=b"%d" % (n % KEYS), value=value, partition=partition)
            for partition in range(partitions)
            for n in range(records)
        ]
    )


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
        "--warehouse",
        directory,
    ]
    outputs = [Path(directory, f"events-{number}") for number in range(count)]
    processes = []
    try:
        for number, output in enumerate(outputs):
            with output.open("w") as events:
                processes.append(subprocess.Popen([*command, "--id", f"c{number}"], stdout=events))
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
    ended = max(datetime.fromisoformat(event["time"]).timestamp() for events in rounds for event in events)
    return {
        "cleaners": count,
        "seconds": round(ended - begun, 1),
        "logs": [sum(len(event["partitions"]) for event in events) for events in rounds],
        "runs": [len(events) for events in rounds],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1_000)
    parser.add_argument("--records", type=int, default=1_000)
    parser.add_argument("--cleaners", type=int, nargs="+", default=[1, 2, 4])
    flags = parser.parse_args()
    for cleaners in flags.cleaners:
        print(json.dumps(measure(cleaners, flags.partitions, flags.records)), flush=True)


if __name__ == "__main__":
    main()
