"""`verify` on Spark: every record of two or more versions, side by side (C1, C3, C4, C5).

    segments ─► mapInArrow: (log, offset, key, digest, side) ─► by offset: is it there, is it the same?
                                                             └► by key: does it win?  ─► findings

The winner of a key is worked out with Spark's own window functions over exact keys: another way
than the round takes, so that the two do not share a mistake. Values stay in the tasks.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from lithify.columnar.access import FileAccess
from lithify.columnar.inspect import inspect_segment
from lithify.model.log import TopicState
from lithify.model.names import LogId
from lithify.model.verification import Finding, FindingKind, LogExpectation
from lithify.ports import InspectedSegment, InspectionResult, Progress

MOST_TASKS = 256
"""Files are spread over at most so many tasks."""

_ROWS = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value_size", pa.int32()),
        ("digest", pa.int64()),
        ("in_past", pa.bool_()),
        ("in_current", pa.bool_()),
        ("finding", pa.string()),
    ]
)
_ROWS_DDL = (
    "partition int, offset long, key binary, value_size int, digest long, "
    "in_past boolean, in_current boolean, finding string"
)

_SAYS = {
    FindingKind.RECORD_LOST: "the record is gone, and no rule of the topic removes it",
    FindingKind.RECORD_ALTERED: "the record is not what was written",
    FindingKind.RECORD_DUPLICATED: "the record is there more than once",
    FindingKind.RECORD_UNKNOWN: "the record was in no earlier version, though its offset was taken",
    FindingKind.SUPERSEDED_KEPT: "a superseded record is still there",
    FindingKind.KEYLESS_KEPT: "a record without a key is still there",
    FindingKind.TOMBSTONE_REMOVED_EARLY: "the tombstone is gone before delete.retention.ms had passed",
    FindingKind.EXPIRED_TOMBSTONE_KEPT: "the tombstone had expired at the last round and is still there",
}


class SparkInspector:
    """Compares versions on a Spark session."""

    def __init__(self, session: Callable[[], SparkSession], access: FileAccess) -> None:
        self._session = session
        self._access = access

    def inspect(
        self,
        state: TopicState,
        segments: Sequence[InspectedSegment],
        expectations: Sequence[LogExpectation],
        most: int,
        progress: Progress,
    ) -> InspectionResult:
        """Reads every segment once and judges every record. See `ports.Inspector`."""
        if not segments:
            return InspectionResult((), 0, 0)
        progress("verify", 0, 1)
        session = self._session()
        rows = _rows(session, self._access, segments)
        found = _findings(rows, _expectation_frame(session, expectations), most + 1).collect()
        progress("verify", 1, 1)
        return InspectionResult(
            findings=tuple(_finding(state, row.finding, row.partition, row.offset) for row in found),
            records=sum(s.segment.records for s in segments if s.in_current),
            bytes_read=sum(s.segment.size_bytes for s in segments),
        )


def _rows(session: SparkSession, access: FileAccess, segments: Sequence[InspectedSegment]) -> DataFrame:
    """One row a record of every segment, and one a finding about a file."""
    tasks = min(len(segments), MOST_TASKS)
    specs = pa.table(
        {
            "task": pa.array([i % tasks for i in range(len(segments))], pa.int32()),
            "segment": pa.array([pickle.dumps(s) for s in segments], pa.binary()),
        }
    )

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for spec in batch.column("segment").to_pylist():
                inspected: InspectedSegment = pickle.loads(spec)
                for piece in inspect_segment(access, inspected.segment):
                    yield from _as_rows(piece, inspected)

    frame = session.createDataFrame(specs).repartitionById(tasks, F.col("task")).select("segment")
    return frame.mapInArrow(read, _ROWS_DDL)


def _as_rows(piece: pa.Table | Finding, inspected: InspectedSegment) -> Iterator[pa.RecordBatch]:
    if isinstance(piece, Finding):
        row = {"partition": piece.partition, "offset": piece.offset, "finding": json.dumps(asdict(piece))}
        yield pa.RecordBatch.from_pylist([row], schema=_ROWS)
        return
    for batch in piece.to_batches():
        count = batch.num_rows
        columns = [
            pa.repeat(pa.scalar(inspected.segment.partition, pa.int32()), count),
            *(batch.column(name) for name in ("offset", "key", "value_size", "digest")),
            pa.repeat(pa.scalar(inspected.in_past), count),
            pa.repeat(pa.scalar(inspected.in_current), count),
            pa.nulls(count, pa.string()),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=_ROWS)


def _expectation_frame(session: SparkSession, expectations: Sequence[LogExpectation]) -> DataFrame:
    return F.broadcast(
        session.createDataFrame(
            pa.table(
                {
                    "partition": pa.array([e.partition for e in expectations], pa.int32()),
                    "log_start": pa.array([e.log_start for e in expectations], pa.int64()),
                    "first_dirty": pa.array([e.first_dirty for e in expectations], pa.int64()),
                    "keep_keyless": pa.array([e.keep_keyless for e in expectations]),
                    "empty_is_tombstone": pa.array([e.empty_is_tombstone for e in expectations]),
                    "known_up_to": pa.array([e.known_up_to for e in expectations], pa.int64()),
                    "expired_below": pa.array([e.tombstones_expired_below for e in expectations], pa.int64()),
                    "gone_below": pa.array([e.tombstones_gone_below for e in expectations], pa.int64()),
                }
            )
        )
    )


def _findings(rows: DataFrame, expectations: DataFrame, most: int) -> DataFrame:
    """(partition, offset, finding) of what is wrong, files first."""
    by_offset = (
        rows.groupBy("partition", "offset", "finding")
        .agg(
            F.max("in_past").alias("past"),
            F.sum(F.col("in_current").cast("int")).alias("copies"),
            F.min("digest").alias("lowest_digest"),
            F.max("digest").alias("highest_digest"),
            F.first("key").alias("key"),
            F.first("value_size").alias("value_size"),
        )
        .join(expectations, "partition")
    )
    # Keyless records have nothing in common: without the second term they would all meet in one task.
    same_key = Window.partitionBy(
        "partition", "key", F.when(F.col("key").isNull(), F.col("offset")).otherwise(F.lit(-1))
    )
    competes = (F.col("offset") < F.col("first_dirty")) & (F.col("offset") >= F.col("log_start"))
    wins = F.col("offset") == F.max(F.when(competes, F.col("offset"))).over(same_key)
    judged = by_offset.withColumn("wins", wins)
    return (
        judged.select("partition", "offset", F.coalesce("finding", _verdict()).alias("finding"))
        .filter(F.col("finding").isNotNull())
        .orderBy(~F.col("finding").startswith("{"), "partition", "offset")
        .limit(most)
    )


def _verdict() -> Column:
    """The kind of finding for one offset, or null if all is as it should be."""
    there = F.col("copies") > 0
    tombstone = F.col("value_size").isNull() | (F.col("empty_is_tombstone") & (F.col("value_size") == 0))
    none = F.lit(None).cast("string")
    lost_above = F.when(F.col("past") & ~there, _kind(FindingKind.RECORD_LOST))
    keyless = F.when(there & ~F.col("keep_keyless"), _kind(FindingKind.KEYLESS_KEPT)).when(
        ~there & F.col("keep_keyless"), _kind(FindingKind.RECORD_LOST)
    )
    gone = (
        F.when(~tombstone, _kind(FindingKind.RECORD_LOST))
        .when(F.col("offset") >= F.col("expired_below"), _kind(FindingKind.TOMBSTONE_REMOVED_EARLY))
        .otherwise(none)
    )
    return (
        F.when(F.col("lowest_digest") != F.col("highest_digest"), _kind(FindingKind.RECORD_ALTERED))
        .when(F.col("copies") > 1, _kind(FindingKind.RECORD_DUPLICATED))
        .when(F.col("offset") < F.col("log_start"), none)
        .when(there & ~F.col("past") & (F.col("offset") < F.col("known_up_to")), _kind(FindingKind.RECORD_UNKNOWN))
        .when(F.col("offset") >= F.col("first_dirty"), lost_above)
        .when(F.col("key").isNull(), keyless)
        .when(~F.col("wins"), F.when(there, _kind(FindingKind.SUPERSEDED_KEPT)))
        .when(~there, gone)
        .when(tombstone & (F.col("offset") < F.col("gone_below")), _kind(FindingKind.EXPIRED_TOMBSTONE_KEPT))
    )


def _kind(kind: FindingKind) -> Column:
    return F.lit(kind.value)


def _finding(state: TopicState, text: str, partition: int, offset: int | None) -> Finding:
    if text.startswith("{"):
        about_file = json.loads(text)
        return Finding(**{**about_file, "kind": FindingKind(about_file["kind"])})
    kind = FindingKind(text)
    return Finding(partition, kind, f"{LogId(state.name, partition)}, offset {offset}: {_SAYS[kind]}", offset)
