"""The key pass of logs with few hash ranges: one task per range, without a shuffle.

Each task reads the key columns of all scanned segments and selects its range. Up to `MAX_READS` ranges this
costs less than a shuffle of the keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from lithify.columnar.files.access import FileAccess
from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass.key_scan import KeyScan, LogScan
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.errors import LithifyError
from lithify.spark.keypass.results import RESULT, error_row, result_rows
from lithify.spark.payloads import Unpacking
from lithify.spark.tasks import PAYLOAD, Batches, TaskPace, columns, in_worker


@dataclass(frozen=True, slots=True)
class RangeTask:
    """The task of one hash range of one log, whose first segment is number `first_segment` of the run."""

    unit: int
    first_segment: int
    access: FileAccess
    log: LogScan
    hash_range: HashRange
    finder: WinnerFinder
    pace: TaskPace


def direct_winners(ranges: DataFrame, unpack: Unpacking) -> DataFrame:
    """Rows of `RESULT` from `ranges`: rows of `RangeTask`, already placed on their Spark partitions."""
    return ranges.select(PAYLOAD).mapInArrow(partial(_run_ranges, unpack=unpack), from_arrow_schema(RESULT))


@in_worker
def _run_ranges(batches: Batches, unpack: Unpacking) -> Batches:
    tasks: list[RangeTask] = [unpack(payload) for (payload,) in columns(batches, PAYLOAD)]
    if not tasks:
        return
    meter = tasks[0].pace.meter()
    acquire = tasks[0].pace.throttles(meter).read
    for task in tasks:
        meter.begin()
        try:
            tally, dead = task.finder.find(_Scans(task, acquire), task.hash_range)
        except LithifyError as error:
            yield error_row(task.unit, error)
        else:
            compared = tally.compared + tally.asked
            spent = meter.spent("range", task.hash_range.index, bytes_read=tally.bytes_read, records=compared)
            yield from result_rows(task.unit, task.first_segment, tally, dead, spent)


class _Scans:
    """Opens scans of a task's range, or parts of it, throttled by `acquire`."""

    def __init__(self, task: RangeTask, acquire: Callable[[int], None]) -> None:
        self._task = task
        self._acquire = acquire

    def __call__(self, part: HashRange) -> KeyScan:
        return KeyScan(self._task.access, self._task.log, settles=part.is_first, acquire=self._acquire)
