"""One topic of many partitions, all due, compacted by 1, 2 and 4 cleaners at once.

    python bench/shared_topic.py [--partitions 1000] [--records 1000] [--cleaners 1 2 4]

Each cleaner is a process of its own, `lithify cleaner run --once`. It prints, for each number of cleaners, the time
from the first look to the end of the last round, and how many logs and runs each cleaner did.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import lithify

KEYS = 200


def feed(directory: str, partitions: int, records: int) -> None:
    topic = lithify.open(directory).create_topic("shared", partitions)
    value = b"v" * 100
    topic.append(
        lithify.Record(key=b"%d" % (n % KEYS), value=value, partition=partition)
        for partition in range(partitions)
        for n in range(records)
    )


def passed(directory: str, cleaners: int) -> list[list[dict[str, Any]]]:
    """The events of each cleaner."""
    command = [sys.executable, "-m", "lithify", "cleaner", "run", "--once", "--json", "--warehouse", directory]
    outputs = [Path(directory, f"events-{number}") for number in range(cleaners)]
    processes = []
    for number, output in enumerate(outputs):
        with output.open("w") as events:
            processes.append(subprocess.Popen([*command, "--id", f"c{number}"], stdout=events))
    assert [process.wait() for process in processes] == [0] * cleaners
    return [[json.loads(line) for line in output.read_text().splitlines()] for output in outputs]


def at(event: dict[str, Any]) -> float:
    """When it was reported, in seconds since the epoch."""
    return datetime.fromisoformat(event["time"]).timestamp()


def measure(cleaners: int, partitions: int, records: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        feed(directory, partitions, records)
        by_cleaner = passed(directory, cleaners)
        state = lithify.open(directory).topic("shared").info()
        assert state.records == partitions * min(records, KEYS), state
    rounds = [[event for event in events if event["event"] == "round"] for events in by_cleaner]
    looked = min(at(event) for events in by_cleaner for event in events if event["event"] == "looked")
    ended = max(at(event) for events in rounds for event in events)
    return {
        "cleaners": cleaners,
        "seconds": round(ended - looked, 1),
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
        begun = time.perf_counter()
        found = measure(cleaners, flags.partitions, flags.records)
        print(json.dumps({**found, "with_start_and_feed_s": round(time.perf_counter() - begun, 1)}), flush=True)


if __name__ == "__main__":
    main()
