"""Writes what Spark's Kafka source reads into segments, in the tasks that read it.

    rows of a task, by offset ─► checked and completed as any append is ─► segment files
                             └─► driver: facts of the segments, or the error that stopped it

A task reads a range of one Kafka partition; a segment has Kafka's own offsets. Nothing is committed
here, and what a task that failed has written stays unnamed, for `sweep`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lithify.columnar.access import FileAccess
from lithify.columnar.incoming import receive
from lithify.columnar.schema import HEADERS, HEADERS_TYPE, KEY, OFFSET, PARTITION, TIMESTAMP, TIMESTAMP_TYPE, VALUE
from lithify.columnar.segment_file import SegmentSpec, SegmentWriter
from lithify.errors import LithifyError
from lithify.model.ingest import Copied
from lithify.model.log import TopicState

SOURCE_COLUMNS = (PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS)
RESULT = "result"
MICROSECONDS = 1000
"""In a millisecond, in which Kafka counts."""


@dataclass(frozen=True, slots=True)
class Copying:
    """What a task has to know. `state` is the version that the batch is to be committed on."""

    state: TopicState
    access: FileAccess
    run_id: str
    drops_keyless: bool


@dataclass(frozen=True, slots=True)
class _Piece:
    """What a task has made of the range of one log."""

    partition: int
    copied: Copied


def copied_logs(frame: DataFrame, copying: Copying) -> Mapping[int, Copied]:
    """Writes the rows of `frame`, which has the columns of Spark's Kafka source. By partition.

    Raises the error of the first task that met one of ours.
    """
    pieces: dict[int, list[Copied]] = {}
    rows = _source_columns(frame).mapInArrow(_Task(copying), f"{RESULT} binary").collect()
    for row in rows:
        match pickle.loads(row[RESULT]):
            case _Piece(partition, copied):
                pieces.setdefault(partition, []).append(copied)
            case LithifyError() as error:
                raise error
    return {partition: _joined(found) for partition, found in sorted(pieces.items())}


def _source_columns(frame: DataFrame) -> DataFrame:
    return frame.select(
        F.col("partition").alias(PARTITION),
        F.col("offset").alias(OFFSET),
        F.unix_micros("timestamp").alias(TIMESTAMP),
        F.col("timestampType").alias(TIMESTAMP_TYPE),
        F.col("key").alias(KEY),
        F.col("value").alias(VALUE),
        F.col("headers").alias(HEADERS),
    )


def _joined(pieces: list[Copied]) -> Copied:
    """The ranges of one log, whose tasks end in any order."""
    in_order = sorted(pieces, key=lambda piece: piece.segments[0].base_offset)
    segments = tuple(segment for piece in in_order for segment in piece.segments)
    return Copied(segments, in_order[-1].last_timestamp_ms)


@dataclass(frozen=True, slots=True)
class _Task:
    copying: Copying

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writing = _Writing(self.copying)
        try:
            for batch in batches:
                writing.write(batch)
            results: list[Any] = writing.close()
        except LithifyError as error:
            results = [error]
        finally:
            writing.abandon()
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(r) for r in results], pa.binary())], [RESULT])


class _Writing:
    """The segments of one task: a writer for each log."""

    def __init__(self, copying: Copying) -> None:
        self._copying = copying
        self._writers: dict[int, SegmentWriter] = {}
        self._last_ms: dict[int, int] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        """Raises `InvalidRecordError` for a record that the settings of the topic refuse."""
        copying = self._copying
        rows = pa.Table.from_batches([batch])
        if copying.drops_keyless:
            rows = rows.filter(pc.is_valid(rows.column(KEY)))
        if not rows.num_rows:
            return
        for partition, table in receive(_given(rows), copying.state, now_ms=0, keep_offsets=True).items():
            if partition not in self._writers:
                spec = SegmentSpec.of(copying.state, partition, copying.run_id)
                self._writers[partition] = SegmentWriter(copying.access, spec)
            self._writers[partition].write(table)
            self._last_ms[partition] = table.column(TIMESTAMP)[-1].as_py()

    def close(self) -> list[_Piece]:
        written = {partition: writer.close() for partition, writer in self._writers.items()}
        self._writers = {}
        return [_Piece(partition, Copied(found, self._last_ms[partition])) for partition, found in written.items()]

    def abandon(self) -> None:
        for writer in self._writers.values():
            writer.abandon()


def _given(rows: pa.Table) -> pa.Table:
    """The columns as an append takes them. Kafka's own timestamps are ms, and -1 where there is none."""
    columns = {name: rows.column(name) for name in SOURCE_COLUMNS}
    columns[TIMESTAMP] = pc.divide(rows.column(TIMESTAMP), MICROSECONDS)
    columns[TIMESTAMP_TYPE] = pc.max_element_wise(rows.column(TIMESTAMP_TYPE), 0)
    columns[HEADERS] = rows.column(HEADERS).cast(HEADERS_TYPE)
    return pa.table(columns)
