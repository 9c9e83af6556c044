"""A whole round against Kafka's own log cleaner, on the same records and on one core each, in turns.

    PYTHONPATH=src:tests python bench/kafka_cleaner.py --data FOLDER [--keys 1000000] [--codec zstd] [--pairs 3]

Kafka's side: a broker with one cleaner thread and the default buffer of 128 MiB, pinned to a core, from
the moment its cleaner is enabled until it has cleaned the whole log; whatever it does meanwhile counts.
Ours: all that `compact` does on a session of one slot, pinned to the same core. As Kafka's log has just been
written, by a broker that is warm from it, an uncounted round precedes ours. It prints records per second,
records per CPU-second of the broker or of our whole process tree, and the ratios of each pair.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from kafka_topics import clean, held_topic, produce, roll
from keyed_segments import Shape, keyed_segments
from lithify.model.segment import Segment
from lithify.spark.session.start import session_factory
from round import with_lithify
from support.kafka.broker import KafkaBroker, a_broker  # type: ignore[import-not-found]

CORE = 0
WARM = 1
"""Uncounted turns that warm up both JVMs."""


@dataclass(slots=True)
class Stopwatch:
    """Wall time, and CPU time of some processes and their descendants, except `others`."""

    roots: tuple[int, ...]
    others: tuple[int, ...] = ()
    wall_s: float = 0.0
    user_s: float = 0.0
    system_s: float = 0.0
    _begun: tuple[float, ...] = field(default=(0.0, 0.0, 0.0))

    def __enter__(self) -> Stopwatch:
        self._begun = self._now()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall_s, self.user_s, self.system_s = (
            now - before for now, before in zip(self._now(), self._begun, strict=True)
        )

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s

    def _now(self) -> tuple[float, ...]:
        times = [process.cpu_times() for process in family(self.roots, self.others)]
        user_s = sum(each.user + each.children_user for each in times)
        return time.perf_counter(), user_s, sum(each.system + each.children_system for each in times)


def family(roots: Iterable[int], others: Iterable[int] = ()) -> list[psutil.Process]:
    """These processes and their descendants, except `others` and theirs."""
    processes = [psutil.Process(root) for root in roots]
    every = processes + [child for process in processes for child in process.children(recursive=True)]
    return [process for process in every if process not in family(others)] if others else every


@contextmanager
def pinned(roots: Iterable[int], others: Iterable[int] = ()) -> Iterator[None]:
    """Pins all threads of these processes and of their descendants to one core."""
    every = os.sched_getaffinity(0)
    _pin(family(roots, others), {CORE})
    try:
        yield
    finally:
        _pin(family(roots, others), every)


def _pin(processes: Iterable[psutil.Process], cores: set[int]) -> None:
    for process in processes:
        for thread in process.threads():
            with suppress(ProcessLookupError):  # the process has just ended
                os.sched_setaffinity(thread.id, cores)


def with_kafka(broker: KafkaBroker, segments: tuple[Segment, ...], codec: str) -> Stopwatch:
    """What Kafka's cleaner takes for these records."""
    topic = held_topic(broker)
    columns = ["timestamp", "key", "value"]
    batches = (batch for s in segments for batch in pq.ParquetFile(s.path).iter_batches(columns=columns))
    end = produce(broker, topic, batches, codec)
    roll(broker, topic, segments[-1].max_timestamp_ms)
    os.sync()
    with pinned([broker.pid]), Stopwatch((broker.pid,)) as watch:
        clean(broker, topic, end)
    broker.delete_topic(topic)
    return watch


def with_ours(
    session: SparkSession, segments: tuple[Segment, ...], folder: Path, codec: str, broker: KafkaBroker
) -> Stopwatch:
    with_lithify(session, segments, folder, codec)
    shutil.rmtree(folder)
    os.sync()
    ours, theirs = (os.getpid(),), (broker.pid,)  # whose parent this process is
    with pinned(ours, theirs), Stopwatch(ours, theirs) as watch:
        figures = with_lithify(session, segments, folder, codec)
    watch.wall_s = figures["seconds"]
    shutil.rmtree(folder)
    return watch


def main() -> None:
    parser = argparse.ArgumentParser(description="Rounds against Kafka's own cleaner.")
    parser.add_argument("--data", type=Path, required=True, help="a folder for the log; made if it is not there")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--codec", default="zstd", choices=["zstd", "lz4", "snappy", "gzip", "none"], help="of both")
    parser.add_argument("--pairs", type=int, default=3)
    asked = parser.parse_args()
    asked.data.mkdir(parents=True, exist_ok=True)
    segments = keyed_segments(asked.data.resolve(), Shape(asked.records, asked.keys, 10, 200, 0.02, asked.codec))
    session = session_factory(None, {"spark.master": "local[1]"})()
    ratios: dict[str, list[float]] = {"records_per_s": [], "records_per_cpu_s": []}
    with a_broker(jvm=(), log_cleaner_threads="1") as broker, tempfile.TemporaryDirectory(dir=asked.data) as scratch:
        ways: dict[str, Callable[[int], Stopwatch]] = {
            "lithify": lambda turn: with_ours(session, segments, Path(scratch) / str(turn), asked.codec, broker),
            "kafka": lambda _turn: with_kafka(broker, segments, asked.codec),
        }
        for turn in range(-WARM, asked.pairs):
            rates: dict[str, dict[str, float]] = {}
            for name in list(ways) if turn % 2 else list(ways)[::-1]:
                watch = ways[name](turn)
                rates[name] = {
                    "records_per_s": round(asked.records / watch.wall_s),
                    "records_per_cpu_s": round(asked.records / watch.cpu_s),
                }
                seconds = {"user_s": round(watch.user_s, 2), "system_s": round(watch.system_s, 2)}
                print(json.dumps({"turn": turn, "way": name, **rates[name], **seconds}), flush=True)
            if turn >= 0:
                for kind, series in ratios.items():
                    series.append(round(rates["lithify"][kind] / rates["kafka"][kind], 2))
    figures = {kind: {"ratios": series, "median": statistics.median(series)} for kind, series in ratios.items()}
    print(json.dumps({"records": asked.records, "keys": asked.keys, "codec": asked.codec, **figures}))
    session.stop()


if __name__ == "__main__":
    main()
