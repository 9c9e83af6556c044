"""A fresh replica of a topic against a plain copy of the same files, in turns; then what a round makes it copy.

    PYTHONPATH=src:tests python bench/replicate.py --gigabytes 2 --times 3

Both copies are on disk when they end: the plain one copies file by file and syncs each, and so does the replica,
which also reads every copy again and compares checksums. The round, by the kernels of the Spark engine and without
Spark, rewrites one segment of a hundred.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from lithify.api.wiring import open_warehouse
from lithify.columnar.files.access import local_path
from lithify.columnar.files.durable import make_lasting
from lithify.model.names import TopicName
from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.ports.store import Warehouse
from lithify.service.replica.copied_files import MirrorRequest
from lithify.service.replica.mirror import mirror
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from shown import add_publish, shown
from support.engines.kernel import KernelEngine  # type: ignore[import-not-found]

TOPIC = TopicName("default", "orders")
SEGMENTS = 100
VALUE_BYTES = 16 * 1024


def made(folder: Path, gigabytes: float) -> Warehouse:
    """A topic of so many segments of the same size, whose values do not compress."""
    warehouse = open_warehouse(str(folder))
    size = int(gigabytes * 2**30) // SEGMENTS
    settings = settings_of({"compression.type": "none", "segment.bytes": size // 2, "delete.retention.ms": 0})
    warehouse.store.create_topic(NewTopic(TOPIC, "orders", settings, 1, 0))
    chance = np.random.default_rng(1)
    for segment in range(SEGMENTS):
        append(warehouse, TOPIC, batch(chance, segment, size // VALUE_BYTES))
    return warehouse


def batch(chance: np.random.Generator, segment: int, records: int) -> pa.Table:
    keys = pa.array([b"%06d-%06d" % (segment, n) for n in range(records)], pa.binary())
    values = chance.integers(0, 256, (records, VALUE_BYTES), np.uint8)
    return pa.table({"key": keys, "value": pa.array([row.tobytes() for row in values], pa.binary())})


def plain_copy_s(warehouse: Warehouse, folder: Path) -> float:
    """Seconds for a copy of the files that the topic names, each on disk."""
    paths = [Path(local_path(s.path) or "") for s in warehouse.store.segments(warehouse.store.load(TOPIC))]
    folder.mkdir()
    begun = time.perf_counter()
    for path in paths:
        shutil.copyfile(path, folder / path.name)
        make_lasting(str(folder / path.name))
    return time.perf_counter() - begun


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def measure(folder: Path, gigabytes: float, times: int) -> dict[str, object]:
    source = made(folder / "source", gigabytes)
    plain_s, replica_s, cpu_s = [], [], []
    request = MirrorRequest(str(folder / "source"))
    for turn in range(times):
        for kind in ("plain", "replica") if turn % 2 else ("replica", "plain"):
            os.sync()
            place = folder / kind
            if kind == "plain":
                plain_s.append(plain_copy_s(source, place))
            else:
                target = open_warehouse(str(place))
                before = time.process_time()
                replica_s.append(seconds(partial(mirror, source, target, TOPIC, request)))
                cpu_s.append(time.process_time() - before)
            if kind == "plain" or turn < times - 1:
                shutil.rmtree(place)
    target = open_warehouse(str(folder / "replica"))
    append(source, TOPIC, batch(np.random.default_rng(2), SEGMENTS // 2, 5))
    round_ = compact(source, KernelEngine(), TOPIC, RunRequest())
    after = mirror(source, target, TOPIC, request)
    whole = sum(s.size_bytes for s in source.store.segments(source.store.load(TOPIC)))
    return {
        "copied_gb": gigabytes,
        "plain_s": [round(s, 2) for s in plain_s],
        "replica_s": [round(s, 2) for s in replica_s],
        "replica_cpu_s": [round(s, 2) for s in cpu_s],
        "rate_to_plain": round(statistics.median(p / r for p, r in zip(plain_s, replica_s, strict=True)), 3),
        "rewritten_by_a_round": round(sum(log.bytes_written for log in round_.logs) / whole, 4),
        "copied_after_it": round(after.bytes_copied / whole, 4),
        "copy_after_it_s": round(after.duration_ms / 1000, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2)
    parser.add_argument("--times", type=int, default=3)
    add_publish(parser)
    given = parser.parse_args()
    with shown(given) as show, tempfile.TemporaryDirectory() as folder:
        show(**measure(Path(folder), given.gigabytes, given.times))


if __name__ == "__main__":
    main()
