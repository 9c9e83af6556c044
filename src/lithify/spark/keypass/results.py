"""What the tasks of a key pass return, and the part of it that the driver collects.

    row of a segment    (unit, segment, change, dead)     positions stay in Spark, counts go to the driver
    row of a part       (unit, tally), or an error        to the driver

A unit is one log of the run. Nothing here is of the size of records or keys (C38).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from lithify.columnar.keypass.tally import Tally
from lithify.columnar.segment.positions import DeadRecords
from lithify.errors import LithifyError
from lithify.spark.tasks import columns

UNIT = "unit"
SEGMENT = "segment"
CHANGE = "change"
DEAD = "dead"
TALLY = "tally"

RESULT = pa.schema(
    [
        (UNIT, pa.int32()),
        (SEGMENT, pa.int32()),
        (CHANGE, pa.int64()),
        (DEAD, pa.binary()),
        (TALLY, pa.binary()),
    ]
)
RESULT_DDL = f"{UNIT} int, {SEGMENT} int, {CHANGE} long, {DEAD} binary, {TALLY} binary"
"""Either a segment with its `DeadPositions`, as a part of the keys tells; or that part's tally or error, pickled."""

_BATCH_BYTES = 8 * 2**20


def result_rows(unit: int, first_segment: int, tally: Tally, found: DeadRecords) -> Iterator[pa.RecordBatch]:
    """The result of one part as rows of `RESULT`, a few megabytes at a time.

    Its segments are numbered in the run from `first_segment` on.
    """
    yield _tally_row(unit, tally)
    rows: list[tuple[int, int, bytes]] = []
    pending_bytes = 0
    for index, dead in found.by_segment().items():
        rows.append((first_segment + index, dead.change, dead.to_bytes()))
        pending_bytes += len(rows[-1][-1])
        if pending_bytes >= _BATCH_BYTES:
            yield _segment_rows(unit, rows)
            rows, pending_bytes = [], 0
    if rows:
        yield _segment_rows(unit, rows)


def error_row(unit: int, error: LithifyError) -> pa.RecordBatch:
    """An error in the place of a tally."""
    return _tally_row(unit, error)


def _tally_row(unit: int, tally: Tally | LithifyError) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{UNIT: unit, TALLY: pickle.dumps(tally)}], schema=RESULT)


def _segment_rows(unit: int, rows: Sequence[tuple[int, int, bytes]]) -> pa.RecordBatch:
    numbers, counts, blobs = zip(*rows, strict=True)
    values = [[unit] * len(rows), numbers, counts, blobs, [None] * len(rows)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(values, RESULT, strict=True)], schema=RESULT
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """What the driver collects: per log its tallies or errors, per segment number its `DeadPositions.change`."""

    tallies: Mapping[int, Sequence[Tally | LithifyError]]
    changes: Mapping[int, int]


def collect_counts(results: DataFrame) -> Counts:
    """Runs the key pass: one row per part of a log and per segment, none per record."""
    rows = results.select(UNIT, SEGMENT, CHANGE, TALLY).toArrow()
    tallies: dict[int, list[Tally | LithifyError]] = {}
    changes: dict[int, int] = {}
    for unit, segment, change, tally in columns(iter(rows.to_batches()), UNIT, SEGMENT, CHANGE, TALLY):
        if tally is not None:
            tallies.setdefault(unit, []).append(pickle.loads(tally))
        else:
            changes[segment] = changes.get(segment, 0) + change
    return Counts(tallies, changes)
