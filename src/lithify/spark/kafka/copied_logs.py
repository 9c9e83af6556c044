"""Writes the rows of Spark's Kafka source to segments, in the tasks that read them.

    rows of a task, by offset ─► checked and completed as by `append` ─► segment files
                             └─► driver: facts of the segments, or the error of the task

A task reads a range of one Kafka partition; segments keep Kafka's offsets. Commits nothing; files of failed
tasks are left unreferenced for `sweep`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
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
"""Microseconds per millisecond, the unit of Kafka's timestamps."""


def copied_logs(frame: DataFrame, copying: Copying) -> tuple[StagedLog, ...]:
    """Writes the rows of `frame`, with the columns of Spark's Kafka source; returns logs by partition and offset.

    Raises the first `LithifyError` that a task returned, or errors of Spark.
    """
    return staged_by(_source_columns(frame).mapInArrow(_Task(copying), f"{RESULT} binary"))


def staged_by(tasks: DataFrame) -> tuple[StagedLog, ...]:
    """What tasks have staged, by partition and offset. Raises the first `LithifyError` that one returned."""
    staged: list[StagedLog] = []
    for row in tasks.collect():
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
        # Spark's Arrow writer fills in offsets from the first null list on again after every row, which is
        # quadratic in the batch: with records without headers it took most of a copy's time.
        F.coalesce("headers", F.array().cast(_HEADERS)).alias(HEADERS),
    )


@dataclass(frozen=True, slots=True)
class _Task:
    copying: Copying

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        results = results_of(self.copying, (_given(pa.Table.from_batches([batch])) for batch in batches))
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(r) for r in results], pa.binary())], [RESULT])


def results_of(copying: Copying, tables: Iterable[pa.Table]) -> Sequence[StagedLog | LithifyError]:
    """Writes what a task has read, in the columns that `append` accepts; its error, if there is one, is the result."""
    stage = Stage(copying.access, copying.topic, now_ms=0, run_id=copying.run_id, attempt=attempt(), keep_offsets=True)
    try:
        for table in tables:
            rows = table.filter(pc.is_valid(table.column(KEY))) if copying.drops_keyless else table
            if rows.num_rows:
                stage.add(rows)
        return stage.close()
    except LithifyError as error:
        return [error]
    finally:
        stage.abandon()


def _given(rows: pa.Table) -> pa.Table:
    """The columns as `append` accepts them: timestamps in ms, and timestamp types of -1 (none) as 0."""
    columns = {name: rows.column(name) for name in SOURCE_COLUMNS}
    columns[TIMESTAMP] = pc.divide(rows.column(TIMESTAMP), MICROSECONDS)
    columns[TIMESTAMP_TYPE] = pc.max_element_wise(rows.column(TIMESTAMP_TYPE), 0)
    columns[HEADERS] = rows.column(HEADERS).cast(HEADERS_TYPE)
    return pa.table(columns)
