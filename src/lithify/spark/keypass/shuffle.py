"""The key pass of logs with many hash ranges: each key is read once and shuffled to its range.

    one task per segment:  read keys ─► settle ─► blocks by range ──┐ shuffle by Spark partition of the range
    one task per range:    spool blocks ─► winners ◄────────────────┘

Results that a segment's task has without comparison (`key_scan`) are shuffled to the first range of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from lithify.columnar.files.access import FileAccess
from lithify.columnar.files.spilled import spill_folder
from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass.key_blocks import Spool, SpooledKeys
from lithify.columnar.keypass.key_scan import KeyScan, LogScan, keys_schema
from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.segment.dead_records import Integers
from lithify.errors import LithifyError
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.spark.keypass.results import (
    RESULT,
    UNIT,
    error_row,
    result_rows,
)
from lithify.spark.payloads import Unpacking
from lithify.spark.tasks import PART, PAYLOAD, Batches, Stage, TaskPace, columns, in_worker, shuffled

RANGE = "hash_range"
PORTION = "portion"
BLOCK = "block"

SENT = pa.schema(
    [
        pa.field(PART, pa.int32()),
        pa.field(RANGE, pa.int32()),
        pa.field(PORTION, pa.string()),
        pa.field(BLOCK, pa.binary()),
        *RESULT,
    ]
)
"""Either a block for a range, or a row of `RESULT` from a segment's task."""


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """Shuffles the keys of one segment, number `segment` of the run, to the ranges of its log.

    `log` has only this segment, in its `portion`; in one of `ONLY_ASKED` its number is not used: it loses no record.
    `parts` is the Spark partition of each range.
    """

    unit: int
    segment: int
    access: FileAccess
    log: LogScan
    portion: Portion
    parts: tuple[int, ...]
    finder: WinnerFinder
    pace: TaskPace


@dataclass(frozen=True, slots=True)
class BlocksTask:
    """Finds the winners of one hash range in its blocks; `starts` comes from `ordinal_starts`."""

    unit: int
    first_segment: int
    rules: SurvivorRules
    starts: Integers
    hash_range: HashRange
    finder: WinnerFinder
    pace: TaskPace


def shuffled_winners(segments: DataFrame, ranges: DataFrame, parts: int, unpack: Unpacking) -> DataFrame:
    """Rows of `RESULT` from `segments`, placed rows of `SegmentTask`, and `ranges`, rows of `BlocksTask`.

    `parts` is the number of Spark partitions after the shuffle.
    """
    return winners_of_blocks(segments, partial(_send_keys, unpack=unpack), ranges, parts, unpack)


def winners_of_blocks(
    senders: DataFrame, send: Callable[[Batches], Batches], ranges: DataFrame, parts: int, unpack: Unpacking
) -> DataFrame:
    """The same for `senders` of any kind, whose tasks yield rows of `SENT`."""
    find = Stage(partial(_find_in_blocks, unpack=unpack), RESULT)
    return shuffled(senders, Stage(send, SENT), ranges, find, parts)


@in_worker
def _send_keys(batches: Batches, unpack: Unpacking) -> Batches:
    meter, acquire = None, None
    for (payload,) in columns(batches, PAYLOAD):
        task: SegmentTask = unpack(payload)
        meter = meter or task.pace.meter()
        acquire = acquire or task.pace.throttles(meter).read
        meter.begin()
        scan = KeyScan(task.access, task.log, settles=True, acquire=acquire)
        try:
            for index, block in task.finder.blocks(scan.keys(task.portion), len(task.parts)):
                row = {PART: task.parts[index], UNIT: task.unit, RANGE: index, PORTION: task.portion, BLOCK: block}
                yield pa.RecordBatch.from_pylist([row], schema=SENT)
        except LithifyError as error:
            settled: Iterator[pa.RecordBatch] = iter([error_row(task.unit, error)])
        else:
            records = sum(segment.records for segment in task.log.of(task.portion))
            spent = meter.spent("send", task.segment, bytes_read=scan.tally.bytes_read, records=records)
            settled = result_rows(task.unit, task.segment, scan.tally, scan.dead, spent)
        for rows in settled:
            to_first = [{PART: task.parts[0], **row} for row in rows.to_pylist()]
            yield pa.RecordBatch.from_pylist(to_first, schema=SENT)


@dataclass(slots=True)
class _Arrived:
    """The tasks that arrived on one Spark partition, and a spool for each."""

    folder: Path
    tasks: list[BlocksTask] = field(default_factory=list)
    spools: dict[tuple[int, int], Spool] = field(default_factory=dict)

    def spool(self, unit: int, index: int) -> Spool:
        if (unit, index) not in self.spools:
            self.spools[unit, index] = Spool(self.folder / f"{unit}-{index}")
        return self.spools[unit, index]


@in_worker
def _find_in_blocks(batches: Batches, unpack: Unpacking) -> Batches:
    with spill_folder() as folder:
        arrived = _Arrived(folder)
        names = (PAYLOAD, UNIT, RANGE, PORTION, BLOCK)
        for batch in batches:
            for row, (payload, unit, index, portion, block) in enumerate(columns(iter([batch]), *names)):
                if payload is not None:
                    arrived.tasks.append(unpack(payload))
                elif block is not None:
                    arrived.spool(unit, index).add(block, Portion(portion))
                else:
                    yield batch.slice(row, 1).select(RESULT.names)
        for task in arrived.tasks:
            yield from _find(task, arrived.spool(task.unit, task.hash_range.index))


def _find(task: BlocksTask, spool: Spool) -> Iterator[pa.RecordBatch]:
    schema = keys_schema(task.rules)
    meter = task.pace.meter()
    meter.begin()
    try:
        tally, dead = task.finder.find(lambda _: SpooledKeys(spool, schema, task.starts), task.hash_range)
    except LithifyError as error:
        yield error_row(task.unit, error)
    else:
        spent = meter.spent("find", task.hash_range.index, records=tally.compared + tally.asked)
        yield from result_rows(task.unit, task.first_segment, tally, dead, spent)
