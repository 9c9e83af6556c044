"""A whole round against queries written by hand: in DuckDB, and in Spark with `row_number`.

    python bench/round.py --data FOLDER [--records 20000000] [--pairs 5]
    python bench/round.py --data FOLDER --records 5000000 --segments 5 --against row_number

A round is everything that `compact` does on a warm session: plan, key pass, rewrite, audit and
commit, to the last record of each key. The query reads the same files. The two run in
turns; the result is the median of the ratios of the pairs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

import lithify
from keyed_segments import Shape, keyed_segments
from lithify.model.log_arithmetic import measured
from lithify.model.segment import Segment
from lithify.model.topic.edit import TopicEdit
from lithify.spark.session.start import session_factory

_DUCKDB = """
import json, os, sys, time, duckdb
out, files = sys.argv[1], sys.argv[2:]
os.makedirs(out)
begun = time.perf_counter()
with duckdb.connect() as c:
    c.execute(f"SET threads = {os.cpu_count()}")
    c.execute("SET preserve_insertion_order = true")
    c.execute("SET enable_progress_bar = false")
    c.execute(f"CREATE TABLE w AS SELECT max(\\"offset\\") AS o FROM read_parquet({files!r}) GROUP BY key")
    keys = time.perf_counter() - begun
    for number, file in enumerate(files):
        latest = f"SELECT * FROM read_parquet('{file}') WHERE \\"offset\\" IN (SELECT o FROM w) ORDER BY \\"offset\\""
        c.execute(f"COPY ({latest}) TO '{out}/{number:05d}.parquet' (FORMAT parquet, COMPRESSION zstd)")
    seconds = time.perf_counter() - begun
    records = c.execute(f"SELECT count(*) FROM read_parquet('{out}/*.parquet')").fetchone()[0]
print(json.dumps({"seconds": round(seconds, 2), "key_pass": round(keys, 2), "records_out": records}))
"""

Figures = dict[str, float]


def with_lithify(session: SparkSession, segments: tuple[Segment, ...], folder: Path, codec: str = "zstd") -> Figures:
    """One round, commit included, of a new topic that names the given files."""
    topic = lithify.open(str(folder)).create_topic("orders", config={"compression.type": codec})
    state = topic.state()
    log = measured(replace(state.logs[0], log_end_offset=segments[-1].end_offset), segments)
    topic.warehouse.store.commit(state, TopicEdit("made", topic.warehouse.clock.now_ms(), {0: log}, add=segments))
    begun = time.perf_counter()
    report = topic.compact(spark=session)
    seconds = time.perf_counter() - begun
    (log_report,) = report.logs
    if log_report.error:
        raise SystemExit(log_report.error)
    phases = {name: round(ms / 1000, 2) for name, ms in log_report.phases_ms.items()}
    return {"seconds": round(seconds, 2), **phases, "records_out": log_report.records_out}


def with_duckdb(segments: tuple[Segment, ...], folder: Path) -> Figures:
    """The last record of each key, by hand, on all cores."""
    paths = [s.path for s in segments]
    ran = subprocess.run([sys.executable, "-c", _DUCKDB, str(folder), *paths], check=True, stdout=subprocess.PIPE)
    figures: Figures = json.loads(ran.stdout)
    return figures


def with_row_number(session: SparkSession, segments: tuple[Segment, ...], folder: Path) -> Figures:
    """The same in Spark SQL over whole records."""
    newest_first = Window.partitionBy("key").orderBy(F.col("offset").desc())
    begun = time.perf_counter()
    records = session.read.parquet(*(s.path for s in segments))
    latest = records.withColumn("place", F.row_number().over(newest_first)).where("place = 1").drop("place")
    latest.sortWithinPartitions("offset").write.option("compression", "zstd").parquet(str(folder))
    seconds = time.perf_counter() - begun
    return {"seconds": round(seconds, 2), "records_out": session.read.parquet(str(folder)).count()}


def in_turns(ways: dict[str, Callable[[Path], Figures]], pairs: int, scratch: Path) -> None:
    """Runs both ways `pairs` times, the first of them now one and now the other, and prints all figures."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(-1, pairs):  # one turn of warm-up
        for name in list(ways) if turn % 2 else list(ways)[::-1]:
            folder = scratch / f"{name}-{turn}"
            figures = ways[name](folder)
            shutil.rmtree(folder)
            if turn >= 0:
                seconds[name].append(figures["seconds"])
                print(json.dumps({"way": name, **figures}), flush=True)
    ours, theirs = seconds
    ratios = [a / b for a, b in zip(seconds[ours], seconds[theirs], strict=True)]
    medians = {name: statistics.median(figures) for name, figures in seconds.items()}
    print(json.dumps({"median_seconds": medians, f"{ours}/{theirs}": round(statistics.median(ratios), 3)}))


def main() -> None:
    parser = argparse.ArgumentParser(description="Times whole rounds.")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the log; made if it is not there")
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--keys", type=int, help="a fifth of the records, if not given")
    parser.add_argument("--segments", type=int, default=20)
    parser.add_argument("--value-bytes", type=int, default=200)
    parser.add_argument("--tombstones", type=float, default=0.02)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--against", choices=["duckdb", "row_number"], default="duckdb")
    asked = parser.parse_args()
    keys = asked.keys or asked.records // 5
    asked.data.mkdir(parents=True, exist_ok=True)
    shape = Shape(asked.records, keys, asked.segments, asked.value_bytes, asked.tombstones)
    segments = keyed_segments(asked.data.resolve(), shape)
    session = session_factory(None, {})()
    others: dict[str, Callable[[Path], Figures]] = {
        "duckdb": lambda folder: with_duckdb(segments, folder),
        "row_number": lambda folder: with_row_number(session, segments, folder),
    }
    ways = {"lithify": lambda folder: with_lithify(session, segments, folder), asked.against: others[asked.against]}
    with tempfile.TemporaryDirectory(dir=asked.data) as scratch:
        in_turns(ways, asked.pairs, Path(scratch))
    session.stop()


if __name__ == "__main__":
    main()
