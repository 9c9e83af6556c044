"""The rewrite on Spark: a task per group of segments, which copies what survives (C39).

    groups ─► (part, group, payload) ────────┐
    marks  ─► joined by segment's number ────┴─► one Spark partition per group ─► facts of new files

Values go from file to file inside of a task. A failed or repeated attempt leaves files that no
version names, under names that no other attempt uses, for `sweep`.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyroaring import BitMap
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lithify.columnar.access import FileAccess
from lithify.columnar.rewrite import Source, Throttles, rewrite
from lithify.columnar.segment_file import SegmentSpec
from lithify.errors import LithifyError
from lithify.model.segment import Segment
from lithify.ports import RewrittenGroup
from lithify.spark.key_pass import MARKS, SEGMENT
from lithify.spark.tasks import PART, PAYLOAD, Pace, columns, placed, task_frame

GROUP = "group"
OUTCOME = "outcome"
_RESULT = pa.schema([(GROUP, pa.int32()), (OUTCOME, pa.binary())])
_RESULT_DDL = f"{GROUP} int, {OUTCOME} binary"


@dataclass(frozen=True, slots=True)
class SourceTask:
    """A segment of a group. `number` is what its marks are filed under, None if it has none."""

    segment: Segment
    survivors: int
    number: int | None
    marks_losers: bool


@dataclass(frozen=True, slots=True)
class GroupTask:
    """One group to rewrite; rates are those of this task alone."""

    group: int
    access: FileAccess
    spec: SegmentSpec
    sources: tuple[SourceTask, ...]
    read_rate_bytes: float | None
    write_rate_bytes: float | None
    pace: Pace


def rewritten(
    session: SparkSession, tasks: Sequence[GroupTask], parts: Sequence[int], marks: DataFrame | None
) -> DataFrame:
    """(group, outcome) of every group. `parts` says on which Spark partition each is done."""
    work = task_frame(session, parts, tasks).select(
        PART, PAYLOAD, F.lit(None).cast("int").alias(SEGMENT), F.lit(None).cast("binary").alias(MARKS)
    )
    wanted = [
        (s.number, part) for task, part in zip(tasks, parts, strict=True) for s in task.sources if s.number is not None
    ]
    if marks is not None and wanted:
        numbers, at = zip(*wanted, strict=True)
        wanted_frame = session.createDataFrame(
            pa.table({SEGMENT: pa.array(numbers, pa.int32()), PART: pa.array(at, pa.int32())})
        )
        marks_at = marks.where(F.col(MARKS).isNotNull()).join(F.broadcast(wanted_frame), SEGMENT)
        work = work.unionByName(marks_at.select(PART, F.lit(None).cast("binary").alias(PAYLOAD), SEGMENT, MARKS))
    return placed(work, parts).select(PAYLOAD, SEGMENT, MARKS).mapInArrow(_run_groups, _RESULT_DDL)


def _run_groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    tasks: list[GroupTask] = []
    marks: dict[int, BitMap] = {}
    for payload, number, blob in columns(batches, PAYLOAD, SEGMENT, MARKS):
        if payload is not None:
            tasks.append(pickle.loads(payload))
        else:
            marks[number] = marks.get(number, BitMap()) | BitMap.deserialize(blob)
    attempt = TaskContext.get().taskAttemptId()
    for task in tasks:
        outcome = _run(task, marks, f"{task.group}-{attempt}-")
        yield pa.RecordBatch.from_pylist([{GROUP: task.group, OUTCOME: pickle.dumps(outcome)}], schema=_RESULT)


def _run(task: GroupTask, marks: dict[int, BitMap], name: str) -> RewrittenGroup | LithifyError:
    sources = [
        Source(
            s.segment,
            s.survivors,
            BitMap() if s.number is None else marks.get(s.number, BitMap()),
            s.marks_losers,
        )
        for s in task.sources
    ]
    throttles = Throttles(task.pace.throttle(task.read_rate_bytes), task.pace.throttle(task.write_rate_bytes))
    try:
        segments, bytes_read = rewrite(task.access, task.spec, sources, name=name, throttles=throttles)
    except LithifyError as error:
        return error
    return RewrittenGroup(segments, bytes_read)
