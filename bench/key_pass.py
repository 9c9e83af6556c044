"""The key pass of one hash range on one core, against reading its keys once, and against DuckDB.

    python bench/key_pass.py --data FOLDER [--records 10000000] [--times 5] [--source OTHER_CHECKOUT/src]

CPU seconds, each in a process of its own, in turns: logs of which 20 % and 80 % of the records have keys of their own,
all dirty, and a clean log of as many keys as records, with 1 % and 0.1 % of new records. With `--source` another state
of the project takes part.
"""

from __future__ import annotations

import argparse
import os
import pickle
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from keyed_segments import Shape, keyed_segments
from lithify.columnar.keypass.key_scan import LogScan
from lithify.model.segment import Segment
from lithify.rules.compaction.survivor_rules import SurvivorRules
from shown import add_publish, shown

_FINDER = """
import pandas, pickle, resource, sys
from lithify.columnar.files.access import FileAccess
from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass.key_scan import KeyScan
from lithify.columnar.keypass.winners import WinnerFinder
log = pickle.load(sys.stdin.buffer)
finder = WinnerFinder(2**29, "seed")
def work():
    finder.find(lambda part: KeyScan(FileAccess(), log, settles=part.is_first), HashRange(0, 1))
"""

_FLOOR = """
import pickle, resource, sys
import pyarrow.parquet as pq
log = pickle.load(sys.stdin.buffer)
def work():
    for segment in log.segments:
        file = pq.ParquetFile(segment.path)
        for group in range(file.num_row_groups):
            file.read_row_group(group, columns=["key", "value_size"], use_threads=False)
"""

_DUCKDB = """
import duckdb, pickle, resource, sys
log = pickle.load(sys.stdin.buffer)
files = [segment.path for segment in log.segments]
def work():
    with duckdb.connect() as c:
        c.execute("SET threads = 1")
        c.execute("SET enable_progress_bar = false")
        c.execute(f"CREATE TABLE w AS SELECT max(\\"offset\\") AS o FROM read_parquet({files!r}) GROUP BY key")
"""

_MEASURED = """
def seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
before = seconds()
work()
print(seconds() - before)
"""


@dataclass(frozen=True, slots=True)
class Way:
    """A program, and where it imports Lithify from."""

    program: str
    source: Path

    def cpu_seconds(self, log: LogScan) -> float:
        ran = subprocess.run(
            [sys.executable, "-c", self.program + _MEASURED],
            input=pickle.dumps(log),
            env={**os.environ, "PYTHONPATH": str(self.source)},
            stdout=subprocess.PIPE,
            check=True,
        )
        return float(ran.stdout)


def logs(folder: Path, records: int) -> dict[str, LogScan]:
    def made(name: str, shape: Shape) -> tuple[Segment, ...]:
        (folder / name).mkdir(parents=True, exist_ok=True)
        return keyed_segments((folder / name).resolve(), shape)

    segments, found = max(1, records // 1_000_000), {}
    for percent, keys in ((20, records // 5), (80, int(2.15 * records))):
        dirty = made(f"dirty-{percent}", Shape(records, keys, segments, 2, 0.02))
        found[f"{percent} % distinct"] = LogScan(_rules(dirty), (), dirty)
    clean = made("clean", Shape(records, records, segments, 2, 0.0, distinct=True))
    for name, new in (("1 % new", records // 100), ("0.1 % new", records // 1000)):
        dirty = made(name, Shape(new, records, 1, 2, 0.0))
        found[name] = LogScan(_rules(clean + dirty), clean, dirty)
    return found


def _rules(segments: tuple[Segment, ...]) -> SurvivorRules:
    horizon = max(segment.end_offset for segment in segments)  # those of new records start at 0 again, and are not read
    return SurvivorRules(0, horizon, False, False, tombstones_expire_below=0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Times key passes.")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the logs; made if it is not there")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--source", type=Path, help="the `src` of another state of the project")
    parser.add_argument("--logs", nargs="*", help="only these")
    add_publish(parser)
    asked = parser.parse_args()
    here = Path(__file__).resolve().parents[1] / "src"
    ways = {"lithify": Way(_FINDER, here), "floor": Way(_FLOOR, here), "duckdb": Way(_DUCKDB, here)}
    if asked.source:
        ways["other"] = Way(_FINDER, asked.source.resolve())
    with shown(asked) as show:
        for name, log in logs(asked.data, asked.records).items():
            if asked.logs and name not in asked.logs:
                continue
            seconds: dict[str, list[float]] = {way: [] for way in ways}
            for turn in range(asked.times):
                for way in list(ways) if turn % 2 else list(ways)[::-1]:
                    seconds[way].append(ways[way].cpu_seconds(log))
            show(log=name, **{f"{way}_cpu_s": round(statistics.median(all_s), 2) for way, all_s in seconds.items()})


if __name__ == "__main__":
    main()
