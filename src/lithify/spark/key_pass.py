"""The key pass on Spark: who wins, for all logs of a run in one job (C38).

    plans ─► a task per (log, hash range) ─► rows (unit, segment, marked, marks)   stay in Spark
                                         └─► rows (unit, tally)                    to the driver

A unit is one log of the run. Marks are persisted and later joined with the groups to rewrite; the
driver only ever sees counts per segment.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from lithify.columnar.access import FileAccess
from lithify.columnar.key_scan import KeyScan, LogScan, Tally
from lithify.columnar.marks import MarkSet
from lithify.columnar.winners import HashRange, find_winners
from lithify.compaction.planner import LogPlan
from lithify.errors import LithifyError
from lithify.spark.tasks import PAYLOAD, Pace, columns

UNIT = "unit"
SEGMENT = "segment"
MARKED = "marked"
MARKS = "marks"
TALLY = "tally"

RESULT = pa.schema(
    [
        (UNIT, pa.int32()),
        (SEGMENT, pa.int32()),
        (MARKED, pa.int64()),
        (MARKS, pa.binary()),
        (TALLY, pa.binary()),
    ]
)
RESULT_DDL = f"{UNIT} int, {SEGMENT} int, {MARKED} long, {MARKS} binary, {TALLY} binary"
"""Either a segment with its marks, or the tally of a part (or its error), pickled."""

_BATCH_BYTES = 8 * 2**20


@dataclass(frozen=True, slots=True)
class RangeTask:
    """One hash range of one log. Segments are numbered in the run from `first_segment` on."""

    unit: int
    first_segment: int
    access: FileAccess
    log: LogScan
    hash_range: HashRange
    memory_bytes: int
    read_rate_bytes: float | None
    pace: Pace


def scan_of(plan: LogPlan) -> LogScan:
    """What the key pass of a plan reads."""
    return LogScan(plan.rules, plan.looked_at, plan.dirty, tuple(step.end_offset for step in plan.base.steps))


def run_ranges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The body of the tasks that read their keys themselves: rows of `RangeTask` to rows of `RESULT`."""
    for (payload,) in columns(batches, PAYLOAD):
        task: RangeTask = pickle.loads(payload)
        acquire = task.pace.throttle(task.read_rate_bytes)

        def open_scan(part: HashRange, task: RangeTask = task, acquire=acquire) -> KeyScan:  # type: ignore[no-untyped-def]
            return KeyScan(task.access, task.log, settles=part.index == 0, acquire=acquire)

        try:
            tally, marks = find_winners(open_scan, task.hash_range, task.memory_bytes)
        except LithifyError as error:
            yield error_row(task.unit, error)
        else:
            yield from result_rows(task.unit, task.first_segment, tally, marks)


def result_rows(unit: int, first_segment: int, tally: Tally, marks: MarkSet) -> Iterator[pa.RecordBatch]:
    """The result of one part as rows of `RESULT`, a few megabytes at a time."""
    yield _tally_row(unit, tally)
    rows: list[tuple[int, int, bytes]] = []
    for index, bitmap in marks.bitmaps().items():
        rows.append((first_segment + index, len(bitmap), bitmap.serialize()))
        if sum(len(blob) for _, _, blob in rows) >= _BATCH_BYTES:
            yield _mark_rows(unit, rows)
            rows = []
    if rows:
        yield _mark_rows(unit, rows)


def error_row(unit: int, error: LithifyError) -> pa.RecordBatch:
    """An error in the place of a tally."""
    return _tally_row(unit, error)


def _tally_row(unit: int, tally: Tally | LithifyError) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{UNIT: unit, TALLY: pickle.dumps(tally)}], schema=RESULT)


def _mark_rows(unit: int, rows: Sequence[tuple[int, int, bytes]]) -> pa.RecordBatch:
    numbers, counts, blobs = zip(*rows, strict=True)
    values = [[unit] * len(rows), numbers, counts, blobs, [None] * len(rows)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(values, RESULT, strict=True)], schema=RESULT
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """What the driver collects: per log its tallies or errors, per segment number the records marked."""

    tallies: Mapping[int, Sequence[Tally | LithifyError]]
    marked: Mapping[int, int]


def collect_counts(results: DataFrame) -> Counts:
    """Runs the key pass: one row per part of a log and per segment, none per record."""
    rows = results.select(UNIT, SEGMENT, MARKED, TALLY).toArrow()
    tallies: dict[int, list[Tally | LithifyError]] = {}
    marked: dict[int, int] = {}
    for unit, segment, count, tally in columns(iter(rows.to_batches()), UNIT, SEGMENT, MARKED, TALLY):
        if tally is not None:
            tallies.setdefault(unit, []).append(pickle.loads(tally))
        else:
            marked[segment] = marked.get(segment, 0) + count
    return Counts(tallies, marked)
