"""The rows that tasks of a key pass return, and the columns of them that the driver collects.

    row of a segment    (unit, segment, change, dead)     `dead` stays in Spark unless the key pass is small,
                                                          the rest goes to the driver
    row of a part       (unit, tally), or an error        goes to the driver
                        (unit, what it took)              the same, of rounds that are profiled

A unit is one log of the run. No row contains keys or values (C38).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from lithify.columnar.keypass.tally import Tally
from lithify.columnar.segment.dead_records import DeadRecords
from lithify.errors import LithifyError
from lithify.ports.profile import TaskSpent
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
"""A segment with its `DeadPositions` from one part of the keys, or a part's pickled tally, error, or what it took."""

_BATCH_BYTES = 8 * 2**20


def result_rows(
    unit: int, first_segment: int, tally: Tally, dead: DeadRecords, spent: Sequence[TaskSpent]
) -> Iterator[pa.RecordBatch]:
    """The result of one part as rows of `RESULT`, in batches of a few megabytes.

    `first_segment` is the number in the run of the part's first segment, `spent` what the part took, if it is profiled.
    """
    yield _tally_row(unit, tally)
    yield from (_tally_row(unit, one) for one in spent)
    rows: list[tuple[int, int, bytes]] = []
    pending_bytes = 0
    for index, positions in dead.by_segment().items():
        rows.append((first_segment + index, positions.change, positions.to_bytes()))
        pending_bytes += len(rows[-1][-1])
        if pending_bytes >= _BATCH_BYTES:
            yield _segment_rows(unit, rows)
            rows, pending_bytes = [], 0
    if rows:
        yield _segment_rows(unit, rows)


def error_row(unit: int, error: LithifyError) -> pa.RecordBatch:
    """A row of `RESULT` with an error instead of a tally."""
    return _tally_row(unit, error)


def _tally_row(unit: int, tally: Tally | LithifyError | TaskSpent) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{UNIT: unit, TALLY: pickle.dumps(tally)}], schema=RESULT)


def _segment_rows(unit: int, rows: Sequence[tuple[int, int, bytes]]) -> pa.RecordBatch:
    numbers, counts, blobs = zip(*rows, strict=True)
    values = [[unit] * len(rows), numbers, counts, blobs, [None] * len(rows)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(values, RESULT, strict=True)], schema=RESULT
    )


@dataclass(frozen=True, slots=True)
class Counts:
    """What the driver collects: tallies or errors by unit, `DeadPositions.change` by segment number.

    And of each task of a round that is profiled (unit, what it took).
    """

    tallies: Mapping[int, Sequence[Tally | LithifyError]]
    changes: Mapping[int, int]
    spent: Sequence[tuple[int, TaskSpent]] = ()


def collect_counts(results: DataFrame) -> Counts:
    """Runs the key pass and collects its counts: one row per part and per segment, none per record.

    Raises errors of Spark.
    """
    return _counts(results.select(UNIT, SEGMENT, CHANGE, TALLY).toArrow())


def collect_all(results: DataFrame) -> tuple[Counts, pa.Table]:
    """Runs a small key pass; collects its counts, and the rows (segment, dead). Raises errors of Spark."""
    rows = results.toArrow()
    return _counts(rows), rows.select([SEGMENT, DEAD]).filter(pc.field(DEAD).is_valid())


def _counts(rows: pa.Table) -> Counts:
    tallies: dict[int, list[Tally | LithifyError]] = {}
    changes: dict[int, int] = {}
    spent: list[tuple[int, TaskSpent]] = []
    for unit, segment, change, pickled in columns(iter(rows.to_batches()), UNIT, SEGMENT, CHANGE, TALLY):
        if pickled is None:
            changes[segment] = changes.get(segment, 0) + change
        elif isinstance(of_part := pickle.loads(pickled), TaskSpent):
            spent.append((unit, of_part))
        else:
            tallies.setdefault(unit, []).append(of_part)
    return Counts(tallies, changes, spent)
