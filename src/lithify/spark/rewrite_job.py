"""Rewrites on Spark: one task per `Rewrite`, which copies the survivors (C39), or `AddMask`, which writes the mask.

    rewrites ─► (part, payload) ───────────────┐
    dead     ─► joined by segment number ──────┴─► Spark partition `part` ─► facts of new files

Where the driver has the dead positions, few of them, they are rows of the same frame, and a single partition needs no
shuffle.

Values are copied from file to file within a task. A failed or repeated attempt leaves unreferenced files,
whose names are unique to it, for `sweep`.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from lithify.columnar.files.access import FileAccess
from lithify.columnar.rewrite import Source, Throttles, mask, rewrite
from lithify.columnar.segment.dead_records import DeadPositions
from lithify.columnar.segment.writer import SegmentSpec
from lithify.errors import LithifyError
from lithify.model.segment import Segment
from lithify.ports.engine import Rewritten
from lithify.ports.profile import TaskSpent
from lithify.spark.keypass.results import DEAD, SEGMENT
from lithify.spark.payloads import Unpacking
from lithify.spark.task_meter import TaskMeter
from lithify.spark.tasks import (
    PART,
    PAYLOAD,
    Batches,
    TaskPace,
    attempt,
    columns,
    in_worker,
    placed,
    placed_tasks,
    task_frame,
)

REWRITE = "rewrite"
OUTCOME = "outcome"
_RESULT = pa.schema([(REWRITE, pa.int32()), (OUTCOME, pa.binary())])


@dataclass(frozen=True, slots=True)
class SourceTask:
    """A segment of a rewrite. `number` is its number in the key pass, None if it has no dead records."""

    segment: Segment
    survivors: int
    number: int | None


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """One rewrite, number `number` of the run."""

    number: int
    access: FileAccess
    spec: SegmentSpec
    sources: tuple[SourceTask, ...]
    pace: TaskPace


@dataclass(frozen=True, slots=True)
class MaskTask:
    """One segment that gets a mask, number `number` of the run."""

    number: int
    access: FileAccess
    spec: SegmentSpec
    source: SourceTask
    pace: TaskPace

    @property
    def sources(self) -> tuple[SourceTask, ...]:
        return (self.source,)


WriteTask = RewriteTask | MaskTask


def rewritten(
    session: SparkSession, tasks: Sequence[WriteTask], parts: Sequence[int], dead: DataFrame | pa.Table | None
) -> DataFrame:
    """A lazy frame (rewrite, outcome); `parts` is the Spark partition of each task.

    `dead` has rows of `results.RESULT`, or is the table of few of `results.collect_all`; None without a key pass.
    """
    run = partial(_run_rewrites, unpack=Unpacking(tasks[0].access))  # all tasks are of one warehouse
    if isinstance(dead, pa.Table):
        work = placed_tasks(_with_dead(session, tasks, parts, dead), max(parts) + 1)
    else:
        work = placed(_joined_to_dead(session, tasks, parts, dead), max(parts) + 1)
    return work.select(PAYLOAD, SEGMENT, DEAD).mapInArrow(run, from_arrow_schema(_RESULT))


def _with_dead(session: SparkSession, tasks: Sequence[WriteTask], parts: Sequence[int], dead: pa.Table) -> DataFrame:
    """(part, payload, segment, dead): a row for each task, and one for each of `dead`, at the task of its segment."""
    part_of = dict(_losing(tasks, parts))
    rows = [row for row in dead.to_pylist() if row[SEGMENT] in part_of]
    return task_frame(
        session,
        [*parts, *(part_of[row[SEGMENT]] for row in rows)],
        [*tasks, *(None for _ in rows)],
        {
            SEGMENT: pa.array([*(None for _ in tasks), *(row[SEGMENT] for row in rows)], pa.int32()),
            DEAD: pa.array([*(None for _ in tasks), *(row[DEAD] for row in rows)], pa.binary()),
        },
    )


def _joined_to_dead(
    session: SparkSession, tasks: Sequence[WriteTask], parts: Sequence[int], dead: DataFrame | None
) -> DataFrame:
    """As `_with_dead`, of dead positions that remain in Spark."""
    none = (F.lit(None).cast("int").alias(SEGMENT), F.lit(None).cast("binary").alias(DEAD))
    work = task_frame(session, parts, tasks).select(PART, PAYLOAD, *none)
    if dead is not None:
        places = F.broadcast(_places(session, tasks, parts))
        placed_dead = dead.where(F.col(DEAD).isNotNull()).join(places, SEGMENT).select(PART, SEGMENT, DEAD)
        work = work.unionByName(placed_dead, allowMissingColumns=True)
    return work


def collect_outcomes(results: DataFrame) -> tuple[dict[int, Rewritten | LithifyError], list[TaskSpent]]:
    """Runs the rewrites; returns each outcome, facts of files or an error, by its number. Raises errors of Spark.

    And what each took, in a round that is profiled; its part is its number.
    """
    outcomes: dict[int, Rewritten | LithifyError] = {}
    spent: list[TaskSpent] = []
    for number, pickled in columns(iter(results.select(REWRITE, OUTCOME).toArrow().to_batches()), REWRITE, OUTCOME):
        outcome = pickle.loads(pickled)
        if isinstance(outcome, TaskSpent):
            spent.append(outcome)
        else:
            outcomes[number] = outcome
    return outcomes, spent


def _places(session: SparkSession, tasks: Sequence[WriteTask], parts: Sequence[int]) -> DataFrame:
    """(segment, part): the Spark partition that needs the dead positions of a segment."""
    losing = _losing(tasks, parts)
    numbers, at = [number for number, _ in losing], [part for _, part in losing]
    table = pa.table({SEGMENT: pa.array(numbers, pa.int32()), PART: pa.array(at, pa.int32())})
    return session.createDataFrame(table).select(SEGMENT, PART)


def _losing(tasks: Sequence[WriteTask], parts: Sequence[int]) -> list[tuple[int, int]]:
    """(segment, part) of each segment that has dead records."""
    return [
        (source.number, part)
        for task, part in zip(tasks, parts, strict=True)
        for source in task.sources
        if source.number is not None
    ]


@in_worker
def _run_rewrites(batches: Batches, unpack: Unpacking) -> Batches:
    tasks: list[WriteTask] = []
    dead: dict[int, DeadPositions] = {}
    for payload, number, blob in columns(batches, PAYLOAD, SEGMENT, DEAD):
        if payload is not None:
            tasks.append(unpack(payload))
        else:
            positions = DeadPositions.of_bytes(blob)
            dead[number] = dead[number].with_part(positions) if number in dead else positions
    if not tasks:
        return
    meter = tasks[0].pace.meter()
    throttles = tasks[0].pace.throttles(meter)
    for task in tasks:
        meter.begin()
        outcome = _run(task, dead, throttles)
        for one in (outcome, *_spent(meter, task, outcome)):
            yield pa.RecordBatch.from_pylist([{REWRITE: task.number, OUTCOME: pickle.dumps(one)}], schema=_RESULT)


def _spent(meter: TaskMeter, task: WriteTask, outcome: Rewritten | LithifyError) -> tuple[TaskSpent, ...]:
    if isinstance(outcome, LithifyError):
        return ()
    read, new = outcome.bytes_read, outcome.segments
    if isinstance(task, MaskTask):
        hidden = sum(s.records_in_file - s.records for s in new)
        written = sum(s.mask_bytes for s in new)
        return meter.spent("mask", task.number, bytes_read=read, bytes_written=written, records=hidden)
    written, records = sum(s.size_bytes for s in new), sum(s.records for s in new)
    return meter.spent("rewrite", task.number, bytes_read=read, bytes_written=written, records=records)


def _run(task: WriteTask, dead: dict[int, DeadPositions], throttles: Throttles) -> Rewritten | LithifyError:
    none = DeadPositions()
    sources = [
        Source(s.segment, s.survivors, none if s.number is None else dead.get(s.number, none)) for s in task.sources
    ]
    name = f"{task.number}-{attempt()}"
    try:
        if isinstance(task, MaskTask):
            masked, bytes_read = mask(task.access, task.spec, sources[0], attempt=name, throttles=throttles)
            return Rewritten((masked,), bytes_read)
        segments, bytes_read = rewrite(task.access, task.spec, sources, attempt=name, throttles=throttles)
    except LithifyError as error:
        return error
    return Rewritten(segments, bytes_read)
