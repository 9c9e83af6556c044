"""How fast log directories of Kafka are imported, without a broker: 200-byte values, by codec.

    PYTHONPATH=src:tests python bench/kafka_import.py [--records 5000000] [--per-batch 500] [--codecs none,lz4,zstd]

Writes segments with our encoder, which a broker reads, and imports them on a warm Spark session with two tasks at
once. `cpu_s` is of all processes. The phases are measured on one segment, alone in a process: `scan` looks for damage
and transactions, `decode` makes columns, `write` makes segments of the lake; each in seconds for a million records.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

import lithify
from lithify.columnar.arrivals.stage import Stage
from lithify.kafka_log.batches.codecs import NAMES
from lithify.kafka_log.batches.decoding import COLUMNS
from lithify.kafka_log.batches.encoding import BatchLimits, encoded
from lithify.kafka_log.committed import Committed
from lithify.kafka_log.segment_scan import scanned
from lithify.model.staged import Destination
from lithify.spark.kafka.directories.log_tasks import SegmentCopy
from process_tree import measured
from shown import add_publish, shown
from support.kafka.ingest import kafka_session  # type: ignore[import-not-found]

CORES = 2
PARTITIONS = 2
SEGMENT_RECORDS = 500_000
VALUE_BYTES = 200
KEYS = 1_000_000
STRIDE = 7_919
POOL_BYTES = 8 * 2**20


def directory(folder: Path, codec: str, records: int, per_batch: int) -> Path:
    """A broker's directory with one topic."""
    places = [
        (folder / f"orders-{partition}", start, min(start + SEGMENT_RECORDS, records // PARTITIONS))
        for partition in range(PARTITIONS)
        for start in range(0, records // PARTITIONS, SEGMENT_RECORDS)
    ]
    with ProcessPoolExecutor(CORES) as pool:
        list(pool.map(partial(_segment, codec, per_batch), *zip(*places, strict=True)))
    (folder / ".kafka_cleanshutdown").touch()
    return folder


def _segment(codec: str, per_batch: int, folder: Path, start: int, end: int) -> None:
    """Values are hexadecimal noise, which a codec makes half as long."""
    folder.mkdir(parents=True, exist_ok=True)
    (number,) = (number for number, name in NAMES.items() if name == codec)
    pool, chance = os.urandom(POOL_BYTES).hex().encode(), random.Random(start)
    with (folder / f"{start:020}.log").open("wb") as file:
        for first in range(start, end, 20 * per_batch):
            offsets = range(first, min(first + 20 * per_batch, end))
            places = [chance.randrange(2 * POOL_BYTES - VALUE_BYTES) for _ in offsets]
            arrays = [
                pa.array(offsets, pa.int64()),
                pa.array([1_700_000_000_000 + n for n in offsets], pa.int64()),
                pa.array([0] * len(offsets), pa.int32()),
                pa.array([b"key-%08d" % (n * STRIDE % KEYS) for n in offsets], pa.binary()),
                pa.array([pool[at : at + VALUE_BYTES] for at in places], pa.binary()),
                pa.nulls(len(offsets), COLUMNS.field("headers").type),
            ]
            table = pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)
            file.writelines(encoded(table, codec=number, leader_epoch=0, limits=BatchLimits(per_batch, 2**20)))


def phases(lake: Any, folder: Path) -> dict[str, float]:
    """Processor seconds of this process for a million records of the first segment."""
    path = min(folder.glob("orders-0/*.log"))
    gc.freeze()  # as workers do
    with path.open("rb") as file:
        scan, scan_s = _timed(partial(scanned, file))
    copy = SegmentCopy(0, path, scan.whole, Committed(0, scan.end_offset))
    tables, decode_s = _timed(lambda: list(copy.tables()))
    stage = _stage(lake)

    def write() -> None:
        for table in tables:
            stage.add(table)
        stage.close()

    _, write_s = _timed(write)
    per_million = sum(map(len, tables)) / 1e6
    seconds = {"scan": scan_s, "decode": decode_s, "write": write_s}
    return {f"{name}_cpu_s_per_million": round(spent / per_million, 2) for name, spent in seconds.items()}


def _stage(lake: Any) -> Stage:
    topic = lake.topic("phases")
    destination = Destination.of(topic.state())
    return Stage(lake.warehouse.files.access, destination, now_ms=0, run_id="r", attempt="a", keep_offsets=True)


def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.process_time()
    return run(), time.process_time() - begun


def turns(session: Any, folder: Path, codec: str, asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each import."""
    directory(folder / codec, codec, asked.records, asked.per_batch)
    lake = lithify.open(str(folder / "lake"))
    for number in range(asked.repeat):
        begun = time.monotonic()
        with measured(os.getpid()) as used:
            (report,) = lake.import_kafka([folder / codec], ["orders"], into=f"{codec}{number}", spark=session)
        took_s = time.monotonic() - begun
        assert (report.error, report.records) == (None, asked.records)
        yield {
            "codec": codec,
            "seconds": round(took_s, 2),
            "cpu_s": round(used.cpu_s, 2),
            "records_per_s_per_core": round(asked.records / took_s / CORES),
            "records_per_cpu_s": round(asked.records / used.cpu_s),
            "worker_mb": round(used.peak_bytes.get("worker", 0) / 1e6),
            "others": round(used.others, 2),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--per-batch", type=int, default=500)
    parser.add_argument("--codecs", default="none,lz4,zstd")
    parser.add_argument("--repeat", type=int, default=2)
    add_publish(parser)
    asked = parser.parse_args()
    with shown(asked) as show:
        session = kafka_session({"spark.master": f"local[{CORES}]"})
        session.range(1).count()
        for codec in asked.codecs.split(","):
            with tempfile.TemporaryDirectory() as made:
                folder = Path(made)
                for row in turns(session, folder, codec, asked):
                    show(**row)
                lake = lithify.open(str(folder / "lake"))
                lake.create_topic("phases", config={"null.key": "reject"})
                show(codec=codec, per_batch=asked.per_batch, **phases(lake, folder / codec))


if __name__ == "__main__":
    main()
