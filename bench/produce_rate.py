"""The rate of appends: 1 M small records in 200 appends from Parquet, each committed.

    python bench/produce_rate.py

The target is 100,000 records a second. Two ways are timed, in turns: `Topic.append` in a process
that has everything imported, and the whole command `lithify produce` on the same 200 files.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lithify
from shown import add_publish, shown

KEY_BYTES, VALUE_BYTES = 16, 32


def make_files(folder: Path, records: int, files: int) -> list[Path]:
    """Parquet files of equal size, with a fifth as many distinct keys as records, and random values."""
    chance = np.random.default_rng(1)
    keys = chance.bytes(KEY_BYTES * (records // 5))
    paths = []
    for number in range(files):
        count = records // files
        drawn = chance.integers(0, records // 5, count)
        values = chance.bytes(VALUE_BYTES * count)
        table = pa.table(
            {
                "key": pa.array([keys[KEY_BYTES * k : KEY_BYTES * (k + 1)] for k in drawn], pa.binary()),
                "value": pa.array([values[VALUE_BYTES * i : VALUE_BYTES * (i + 1)] for i in range(count)], pa.binary()),
            }
        )
        paths.append(folder / f"{number:04d}.parquet")
        pq.write_table(table, paths[-1])
    return paths


def by_python(lake: lithify.Lake, name: str, paths: list[Path]) -> float:
    """Seconds for one append per file."""
    topic = lake.create_topic(name)
    begun = time.perf_counter()
    for path in paths:
        topic.append(pq.read_table(path))
    return time.perf_counter() - begun


def by_command(lake: lithify.Lake, warehouse: Path, name: str, paths: list[Path]) -> float:
    """Seconds for the whole command, its start included."""
    lake.create_topic(name)
    program = [str(Path(sys.executable).parent / "lithify"), "--warehouse", str(warehouse)]
    begun = time.perf_counter()
    subprocess.run([*program, "produce", name, *map(str, paths)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description="Times appends from Parquet.")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--appends", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    add_publish(parser)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = make_files(Path(folder), asked.records, asked.appends)
        warehouse = Path(folder) / "lake"
        lake = lithify.open(str(warehouse))
        seconds: dict[str, list[float]] = {"python": [], "command": []}
        for run in range(asked.runs):
            seconds["python"].append(by_python(lake, f"python-{run}", paths))
            seconds["command"].append(by_command(lake, warehouse, f"command-{run}", paths))
            counts = {lake.topic(f"{way}-{run}").info().records for way in seconds}
            assert counts == {asked.records}, counts
    with shown(asked) as show:
        for way, times in seconds.items():
            middle = statistics.median(times)
            show(
                way=way,
                records=asked.records,
                appends=asked.appends,
                whole_s=round(middle, 2),
                append_ms=round(1000 * middle / asked.appends, 1),
                records_per_s=round(asked.records / middle),
            )


if __name__ == "__main__":
    main()
