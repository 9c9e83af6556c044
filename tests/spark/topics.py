"""Topics in a real warehouse as Spark sees them, in the form in which a reader gives them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

import lithify
from lithify import Record, spark_source
from lithify.api.lake import Lake
from lithify.api.topic import Topic
from lithify.api.wiring import open_warehouse
from lithify.model.record import TIMESTAMP_TYPES
from lithify.service.change.expire import expire_versions
from lithify.spark_source.columns import SCHEMA
from lithify.spark_source.options import read_options
from lithify.spark_source.reading import BatchReader, StreamReader

T0_MS = 1_700_000_000_000
HEADERS = ((), (("h", b"x"), ("n", None)), (("", b""), ("h", b"1"), ("h", b"2")))


def lake_for(session: SparkSession, folder: Path) -> Lake:
    """A lake in a folder, which the session's format `lithify` reads and writes."""
    spark_source.register(session, str(folder / "lake"))
    return lithify.open(str(folder / "lake"))


def some_records(count: int, *, keys: int = 10, start: int = 0) -> list[Record]:
    """Records with hard keys, tombstones, empty values and headers, a millisecond apart."""
    return [
        Record(
            key=b"" if i % keys == 0 else b"k%d" % (i % keys),
            value=None if i % 7 == 3 else b"" if i % 11 == 5 else b"v%d" % i,
            timestamp=T0_MS + i,
            headers=HEADERS[i % 3],
        )
        for i in range(start, start + count)
    ]


def read_by(reader: Any, topic: str, **options: object) -> DataFrame:
    """`load()` of `spark.read` or `spark.readStream` with these options."""
    return reader.format("lithify").options(subscribe=topic, **{k: str(v) for k, v in options.items()}).load()


def records_of(table: pa.Table) -> list[Record]:
    """Rows with the columns of Kafka's source as records, in their order."""
    rows = table.set_column(
        table.schema.get_field_index("timestamp"), "timestamp", table.column("timestamp").cast(pa.int64())
    ).to_pylist()
    return [
        Record(
            key=row["key"],
            value=row["value"],
            timestamp=row["timestamp"] // 1000,
            headers=tuple((h["key"], h["value"]) for h in row.get("headers") or ()),
            partition=row["partition"],
            offset=row["offset"],
            timestamp_type=TIMESTAMP_TYPES[row["timestampType"]],
        )
        for row in rows
    ]


def in_order(records: Iterable[Record]) -> list[Record]:
    """By partition and offset: Spark says nothing of the order of tasks."""
    return sorted(records, key=lambda r: (r.partition or 0, r.offset or 0))


def spark_records(frame: DataFrame) -> list[Record]:
    """What Spark reads, by partition and offset."""
    return in_order(records_of(frame.toArrow()))


def places(records: Iterable[Record]) -> list[tuple[int, int]]:
    return [(r.partition or 0, r.offset or 0) for r in records]


def read_here(reader: BatchReader | StreamReader, partitions: Iterable[InputPartition]) -> list[pa.RecordBatch]:
    """What tasks would read, in this process."""
    return [batch for partition in partitions for batch in reader.read(partition)]


def batch_after(warehouse: Path, place: str | None, **options: object) -> tuple[list[Record], str]:
    """The batch of the topic `t` that a stream has after a place in its checkpoint, and the place behind it."""
    given = {"subscribe": "t", "startingOffsets": "earliest", "includeHeaders": "true", **options}
    asked = read_options({name: str(value) for name, value in given.items()})
    reader = StreamReader(lambda: open_warehouse(str(warehouse), None), asked, SCHEMA)
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset() if place is None else json.loads(place)
    end = json.loads(json.dumps(reader.latestOffset(start, ReadAllAvailable())))
    batches = [] if end == start else read_here(reader, reader.partitions(start, end))
    return in_order(records_of(pa.Table.from_batches(batches))) if batches else [], json.dumps(end)


def files_of(topic: Topic) -> list[Any]:
    """The segments of a topic, by partition and offset."""
    return list(topic.warehouse.store.segments(topic.state()))


def forget_commit(checkpoint: Path, batch_id: int) -> None:
    """As if the driver had died before it noted the end of its last batch: Spark plans that batch again."""
    (checkpoint / "commits" / str(batch_id)).unlink()
    (checkpoint / "commits" / f".{batch_id}.crc").unlink()


def swept(topic: Topic) -> int:
    """Expires the versions whose time is over and sweeps their files; returns how many it deleted."""
    expire_versions(topic.warehouse, topic.topic_name)
    return len(topic.sweep(delete=True).files)


@dataclass(slots=True)
class Collected:
    """A sink that keeps every batch: give `add` to `foreachBatch`."""

    batches: list[list[Record]] = field(default_factory=list)

    def add(self, frame: DataFrame, _batch_id: int) -> None:
        self.batches.append(records_of(frame.toArrow()))

    @property
    def records(self) -> list[Record]:
        return [record for batch in self.batches for record in batch]

    @property
    def places(self) -> Sequence[tuple[int, int]]:
        return sorted(places(self.records))
