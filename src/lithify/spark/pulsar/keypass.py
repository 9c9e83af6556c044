"""The key pass of partitions with many new entries: entries are read once, and their keys shuffled.

one task per range of entries:  read ─► keys by hash range ──┐ shuffle
one task per hash range:        spool ─► what stays ◄────────┘ ─► bitmaps, to the task that writes the view
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import pyarrow as pa
from pyspark.sql import DataFrame

from lithify.columnar.files.spilled import spill_folder
from lithify.columnar.key_hash import HashRange, KeyHash, ranges_of
from lithify.columnar.keypass.key_blocks import Spool
from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.segment.dead_records import DeadRecords
from lithify.errors import LithifyError
from lithify.pulsar.rounds.arrived_keys import ArrivedKeys
from lithify.pulsar.rounds.entry_ranks import RANGE_SHIFT
from lithify.pulsar.rounds.entry_scan import EntryScan, PlacedChunk, Unsettled
from lithify.spark.pulsar.round_tasks import (
    BLOB,
    DEAD,
    ERROR,
    KEYS,
    KIND,
    NUMBER,
    READ,
    SENT,
    TALLY,
    UNIT,
    UNSETTLED,
    FindTask,
    ScanTask,
    TaskTools,
    pickled,
    sent,
)
from lithify.spark.tasks import PAYLOAD, Batches, Stage, columns, in_worker, shuffled


def key_pass(scans: DataFrame, finds: DataFrame, parts: int, tools: TaskTools) -> DataFrame:
    """Rows of `SENT` for the tasks that write views, whose Spark partitions are the numbers of their units.

    `scans` are placed rows of `ScanTask`, `finds` rows of `FindTask`, one for each of `parts` Spark partitions.
    """
    return shuffled(scans, Stage(partial(_scan, tools=tools), SENT), finds, Stage(_find, SENT), parts)


@in_worker
def _scan(batches: Batches, tools: TaskTools) -> Batches:
    throttles = tools.rates.throttles()
    for (payload,) in columns(batches, PAYLOAD):
        task: ScanTask = pickle.loads(payload)
        try:
            reader = tools.reader_of(task.partition, task.small_entries)
            scan = EntryScan(reader, [task.one], task.rules, throttles.read)
            yield from _blocks(task, scan)
        except LithifyError as error:
            yield pickled(task.parts[0], task.unit, ERROR, 0, error)
            continue
        yield from _unsettled(task, scan.unsettled)
        yield from _results(task.parts[0], task.unit, scan.tally, scan.dead)
        yield pickled(task.parts[0], task.unit, READ, task.one.number, scan.read[task.one.number])


def _blocks(task: ScanTask, scan: EntryScan) -> Iterator[pa.RecordBatch]:
    portion = task.one.portion(task.rules)
    places = count(task.one.number << RANGE_SHIFT)
    for index, block in task.finder.blocks(scan.keys(portion), len(task.parts)):
        yield sent(task.parts[index], task.unit, f"{KEYS} {portion}", next(places), block)


def _unsettled(task: ScanTask, unsettled: Unsettled) -> Iterator[pa.RecordBatch]:
    """Chunks to the hash range of their key, sealed batches to all."""
    hashes = KeyHash(task.finder.seed)
    of_range: list[list[PlacedChunk]] = [[] for _ in task.parts]
    if unsettled.chunks:
        keys = pa.array([placed.chunk.key or b"" for placed in unsettled.chunks], pa.binary())
        for index, placed_chunk in zip(ranges_of(hashes(keys), len(task.parts)), unsettled.chunks, strict=True):
            of_range[index].append(placed_chunk)
    for part, chunks in zip(task.parts, of_range, strict=True):
        if chunks or unsettled.sealed:
            yield pickled(part, task.unit, UNSETTLED, 0, Unsettled(chunks, unsettled.sealed))


def _results(part: int, unit: int, tally: Tally, dead: DeadRecords) -> Iterator[pa.RecordBatch]:
    yield pickled(part, unit, TALLY, 0, tally)
    for number, positions in dead.by_segment().items():
        yield sent(part, unit, DEAD, number, positions.to_bytes())


@dataclass(slots=True)
class _Arrived:
    """What arrived for one hash range, and its task."""

    spool: Spool
    unsettled: Unsettled = field(default_factory=Unsettled)
    task: FindTask | None = None


@in_worker
def _find(batches: Batches) -> Batches:
    with spill_folder() as folder:
        arrived = _Arrived(Spool(folder / "keys"))  # each Spark partition has one hash range
        for payload, unit, kind, number, blob in columns(batches, PAYLOAD, UNIT, KIND, NUMBER, BLOB):
            if payload is not None:
                arrived.task = pickle.loads(payload)
            elif kind == UNSETTLED:
                unsettled: Unsettled = pickle.loads(blob)
                arrived.unsettled.chunks += unsettled.chunks
                arrived.unsettled.sealed += unsettled.sealed
            elif kind.startswith(KEYS):
                arrived.spool.add(blob, Portion(kind.partition(" ")[2]), number)
            else:
                yield sent(unit, unit, kind, number, blob)
        if arrived.task is not None:
            yield from _range_results(arrived.task, arrived)


def _range_results(task: FindTask, arrived: _Arrived) -> Iterator[pa.RecordBatch]:
    keys = ArrivedKeys(task.rules, task.ranges, arrived.spool, arrived.unsettled)
    try:
        tally, dead = keys.find(task.finder, HashRange(task.index, task.count))
    except LithifyError as error:
        yield pickled(task.unit, task.unit, ERROR, 0, error)
    else:
        yield from _results(task.unit, task.unit, tally, dead)
