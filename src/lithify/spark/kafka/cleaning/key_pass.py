"""The key pass of one log of segment files: the engine's own, which has no map that could be full (C38).

    one task per segment:  records ─► keys ─► blocks by hash range ──┐ shuffle
    one task per range:    spool blocks ─► winners ◄─────────────────┘ ─► driver: the dead of each segment, as bitmaps

A bitmap takes at most about a bit for each offset of its segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.segment.dead_records import DeadPositions, DeadRecords
from lithify.errors import EngineError, LithifyError
from lithify.kafka_log.cleaning.segment_keys import KeysOfFile, ordinal_starts
from lithify.ports.engine import RunLimits
from lithify.rules.compaction.key_pass_shape import winners_memory
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.spark.keypass.results import DEAD, SEGMENT, UNIT, Counts, collect_all, error_row, result_rows
from lithify.spark.keypass.shuffle import BLOCK, PORTION, RANGE, SENT, BlocksTask, winners_of_blocks
from lithify.spark.payloads import Unpacking
from lithify.spark.tasks import PART, PAYLOAD, Batches, Workers, columns, in_worker, job_errors, placed, task_frame

RANGE_BYTES = 64 * 2**20
"""Of dirty segments for each hash range."""


def dead_positions(
    session: SparkSession, workers: Workers, limits: RunLimits, files: Sequence[KeysOfFile]
) -> Mapping[int, DeadPositions]:
    """By number of the segment, the records that lose; positions are offsets in the segment.

    Raises `DamagedError` or `EngineError`.
    """
    dirty = sum(file.keys.whole.end for file in files if file.is_dirty)
    ranges = max(1, min(-(-dirty // RANGE_BYTES), workers.slots))
    finder = WinnerFinder(winners_memory(limits.task_memory_bytes), workers.new_id())
    pace, unpack = workers.task_pace(limits, len(files)), Unpacking(workers.access)
    rules = SurvivorRules(0, 0, keep_keyless=False, empty_is_tombstone=False, tombstones_expire_below=0)
    finders = [
        BlocksTask(0, 0, rules, ordinal_starts(len(files)), HashRange(index, ranges), finder, pace)
        for index in range(ranges)
    ]
    senders = [_KeysTask(file, finder, ranges) for file in files]
    with job_errors():
        sending = placed(task_frame(session, range(len(files)), senders), len(files))
        finding = task_frame(session, range(ranges), finders)
        found = winners_of_blocks(sending, partial(_send_keys, unpack=unpack), finding, ranges, unpack)
        counts, rows = collect_all(found)
    _check(counts)
    dead = {number: file.none_found() for number, file in enumerate(files)}
    for number, part in zip(rows.column(SEGMENT).to_pylist(), rows.column(DEAD).to_pylist(), strict=True):
        dead[number] = dead[number].with_part(DeadPositions.of_bytes(part))
    return dead


def _check(counts: Counts) -> None:
    total = Tally()
    for tally in counts.tallies.get(0, ()):
        if isinstance(tally, LithifyError):
            raise tally
        total.add(tally)
    if total.compared != total.dirty_keyed:
        raise EngineError(
            f"{total.dirty_keyed} records have keys, but {total.compared} were compared",
            hint="check that all workers run the same version of Lithify; the log is unchanged",
        )


@dataclass(frozen=True, slots=True)
class _KeysTask:
    """Sends the keys of a segment to their hash ranges, whose Spark partitions have their numbers."""

    file: KeysOfFile
    finder: WinnerFinder
    ranges: int


@in_worker
def _send_keys(batches: Batches, unpack: Unpacking) -> Batches:
    for (payload,) in columns(batches, PAYLOAD):
        task: _KeysTask = unpack(payload)
        file, tally = task.file, Tally()
        try:
            for index, block in task.finder.blocks(file.batches(tally), task.ranges):
                row = {PART: index, UNIT: 0, RANGE: index, PORTION: file.portion, BLOCK: block}
                yield pa.RecordBatch.from_pylist([row], schema=SENT)
        except LithifyError as error:
            told = iter([error_row(0, error)])
        else:
            told = result_rows(0, 0, tally, DeadRecords(ordinal_starts(0)), ())
        for rows in told:
            yield pa.RecordBatch.from_pylist([{PART: 0, **row} for row in rows.to_pylist()], schema=SENT)
