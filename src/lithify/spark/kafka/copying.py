"""Writes what Spark's Kafka source reads into segments, in the tasks that read it.

    rows of a task, by offset ─► checked and completed as any append is ─► segment files
                             └─► driver: facts of the segments, or the error that stopped it

A task reads a range of one Kafka partition; a segment has Kafka's own offsets. Nothing is committed
here, and what a task that failed has written stays unnamed, for `sweep`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lithify.columnar.arrivals.stage import Stage
from lithify.columnar.segment.schema import (
    HEADERS,
    HEADERS_TYPE,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
)
from lithify.errors import LithifyError
from lithify.model.staged import StagedLog
from lithify.ports.source import Copying
from lithify.spark.tasks import attempt

SOURCE_COLUMNS = (PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS)
RESULT = "result"
_HEADERS = "array<struct<key: string, value: binary>>"
MICROSECONDS = 1000
"""In a millisecond, in which Kafka counts."""


def copied_logs(frame: DataFrame, copying: Copying) -> tuple[StagedLog, ...]:
    """Writes the rows of `frame`, which has the columns of Spark's Kafka source. In offset order, log by log.

    Raises the error of the first task that met one of ours.
    """
    staged: list[StagedLog] = []
    for row in _source_columns(frame).mapInArrow(_Task(copying), f"{RESULT} binary").collect():
        match pickle.loads(row[RESULT]):
            case LithifyError() as error:
                raise error
            case log:
                staged.append(log)
    return tuple(sorted(staged, key=lambda log: (log.partition, log.segments[0].base_offset)))


def _source_columns(frame: DataFrame) -> DataFrame:
    return frame.select(
        F.col("partition").alias(PARTITION),
        F.col("offset").alias(OFFSET),
        F.unix_micros("timestamp").alias(TIMESTAMP),
        F.col("timestampType").alias(TIMESTAMP_TYPE),
        F.col("key").alias(KEY),
        F.col("value").alias(VALUE),
        # Spark's Arrow writer leaves null lists to be filled in, from the first one on, after every row: with
        # records without headers its work grew with the square of a batch, and took most of a copy's time.
        F.coalesce("headers", F.array().cast(_HEADERS)).alias(HEADERS),
    )


@dataclass(frozen=True, slots=True)
class _Task:
    copying: Copying

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        copying = self.copying
        stage = Stage(
            copying.access, copying.topic, now_ms=0, run_id=copying.run_id, attempt=attempt(), keep_offsets=True
        )
        results: Sequence[StagedLog | LithifyError]
        try:
            for batch in batches:
                rows = pa.Table.from_batches([batch])
                if copying.drops_keyless:
                    rows = rows.filter(pc.is_valid(rows.column(KEY)))
                if rows.num_rows:
                    stage.add(_given(rows))
            results = stage.close()
        except LithifyError as error:
            results = [error]
        finally:
            stage.abandon()
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(r) for r in results], pa.binary())], [RESULT])


def _given(rows: pa.Table) -> pa.Table:
    """The columns as an append takes them. Kafka's own timestamps are ms, and -1 where there is none."""
    columns = {name: rows.column(name) for name in SOURCE_COLUMNS}
    columns[TIMESTAMP] = pc.divide(rows.column(TIMESTAMP), MICROSECONDS)
    columns[TIMESTAMP_TYPE] = pc.max_element_wise(rows.column(TIMESTAMP_TYPE), 0)
    columns[HEADERS] = rows.column(HEADERS).cast(HEADERS_TYPE)
    return pa.table(columns)
