"""Finding the record of one key: `topic.get`, with an index of keys in the segments and without, in turns.

    python bench/get.py --data FOLDER [--keys 20000000] [--segments 20] [--lookups 40] [--table]

Every key is in one segment, anywhere. Milliseconds of lookups in a process that has looked up one before: of keys that
are there, of keys that are not; and of the first one of a process, after its imports. With `--table` also the time in
which the whole table tells the same.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import lithify
from keyed_segments import Shape, keyed_segments, keys_of, topic_of
from shown import add_publish, shown

FIRST = """
import sys, time
import lithify, lithify.api.topic
begun, used = time.perf_counter(), time.process_time()
lithify.open(sys.argv[1]).topic("orders").get(sys.argv[2].encode())
print(time.perf_counter() - begun, time.process_time() - used)
"""
TOMBSTONES = 0.01
ABSENT = b"-"
"""Behind a key it makes one that is between two others."""

Figures = dict[str, float]


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def looked_up(topic: lithify.Topic, keys: Iterable[bytes]) -> tuple[Figures, int]:
    """Milliseconds of each lookup, by the clock and of the processor, and how many keys were there."""
    clock, processor, there = [], [], 0
    for key in keys:
        begun, used = time.perf_counter(), cpu_seconds()
        there += topic.get(key) is not None
        clock.append(1000 * (time.perf_counter() - begun))
        processor.append(1000 * (cpu_seconds() - used))
    told = {"ms": statistics.median(clock), "most_ms": max(clock), "cpu_ms": statistics.median(processor)}
    return {name: round(value, 1) for name, value in told.items()}, there


def first(folder: Path, keys: Iterable[bytes]) -> Figures:
    """The first lookup of a process that has imported Lithify, which imports Arrow for it."""
    told = []
    for key in keys:
        ran = subprocess.run([sys.executable, "-c", FIRST, folder, key], capture_output=True, text=True, check=True)
        told.append([1000 * float(seconds) for seconds in ran.stdout.split()])
    clock, processor = map(statistics.median, zip(*told, strict=True))
    return {"ms": round(clock, 1), "cpu_ms": round(processor, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Times lookups of single keys.")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the segments; kept, and used again")
    parser.add_argument("--keys", type=int, default=20_000_000)
    parser.add_argument("--segments", type=int, default=20)
    parser.add_argument("--value-bytes", type=int, default=40)
    parser.add_argument("--lookups", type=int, default=40)
    parser.add_argument("--table", action="store_true", help="make the whole table as well")
    add_publish(parser)
    asked = parser.parse_args()
    chance = np.random.default_rng(1)
    keys = keys_of(chance.choice(asked.keys, asked.lookups)).to_pylist()
    with shown(asked) as show, tempfile.TemporaryDirectory() as scratch:
        topics: dict[bool, lithify.Topic] = {}
        for indexed in (True, False):
            shape = Shape(
                asked.keys,
                asked.keys,
                asked.segments,
                asked.value_bytes,
                TOMBSTONES,
                distinct=True,
                indexes_keys=indexed,
            )
            folder = (asked.data / f"{asked.keys}-{indexed}").resolve()
            folder.mkdir(parents=True, exist_ok=True)
            topics[indexed] = topic_of(keyed_segments(folder, shape), Path(scratch) / str(indexed))
            topics[indexed].get(keys[0])
        for indexed, topic in topics.items():
            few = keys if indexed else keys[: max(1, len(keys) // 10)]
            there, found = looked_up(topic, few)
            absent, none = looked_up(topic, [key + ABSENT for key in few])
            assert found > len(few) * (1 - 10 * TOMBSTONES) - 1 and none == 0, (found, none)
            alone = first(Path(scratch) / str(indexed), few[:3])
            kinds = {"there": there, "absent": absent, "first": alone}
            figures = {f"{kind}_{name}": value for kind, told in kinds.items() for name, value in told.items()}
            show(index=indexed, keys=asked.keys, **figures)
        if asked.table:
            begun = time.perf_counter()
            rows = sum(len(batch) for batch in topics[False].table_batches())
            show(index=False, rows_of_the_table=rows, table_s=round(time.perf_counter() - begun, 1))


if __name__ == "__main__":
    main()
