"""Segments of Kafka's log directories, scanned and copied by tasks: one for a large segment, or for many small ones.

    files ─► scans ─► driver: which records count ─► files, ranges, aborted transactions ─► our segments

The tasks read the files by the paths that the driver knows, so that each machine has to have the directories.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lithify.columnar.segment.schema import PARTITION
from lithify.errors import LithifyError
from lithify.kafka_log.batches.frames import WholePart
from lithify.kafka_log.committed import Committed
from lithify.kafka_log.directories.described import reading, too_many_facts
from lithify.kafka_log.directories.files import opened
from lithify.kafka_log.segment_scan import ANY_OFFSETS, MOST_FACTS, SegmentScan, scanned
from lithify.model.staged import StagedLog
from lithify.ports.source import Copying, StopAsked
from lithify.spark.kafka.copied_logs import RESULT, results_of, staged_by
from lithify.spark.stoppable import stoppable
from lithify.spark.tasks import (
    PAYLOAD,
    Batches,
    columns,
    in_worker,
    job_errors,
    partitions,
    placed_tasks,
    spread,
    task_frame,
)

FULL_BYTES, LEAST_BYTES = 128 * 2**20, 4 * 2**20
"""Of the segments of one task, and of those that are worth a task where cores have nothing else to do."""
SCAN_BYTES, COPY_BYTES = 2**10, 2**20
"""What it costs to open a file, and to write one to the disk, in bytes of segments."""
_DAMAGED = "give the directory of another replica, or leave out what is damaged with --skip-damaged"

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A file to scan, as `scanned` does it."""

    path: Path
    size_bytes: int
    cuts: bool = False
    offsets: range = ANY_OFFSETS
    reads_records: bool = False
    end: int | None = None


@dataclass(frozen=True, slots=True)
class SegmentCopy:
    """Records of one file, in the part of it that is whole."""

    partition: int
    path: Path
    whole: WholePart
    committed: Committed

    def tables(self) -> Iterator[pa.Table]:
        """The columns that `append` accepts. Raises `InvalidInputError` or `DamagedError`."""
        with reading(self.path, _DAMAGED), opened(self.path) as file:
            for part in self.committed.columns(file, self.whole):
                yield pa.Table.from_batches([part]).append_column(
                    pa.field(PARTITION, pa.int32()), pa.array([self.partition] * part.num_rows, pa.int32())
                )


def segment_file(
    path: Path,
    *,
    cuts: bool = False,
    offsets: range = ANY_OFFSETS,
    reads_records: bool = False,
    end: int | None = None,
) -> SegmentFile:
    """A file that is there. Raises `InvalidInputError`."""
    with reading(path):
        return SegmentFile(path, path.stat().st_size, cuts, offsets, reads_records, end)


def scans_of(
    session: SparkSession, files: Sequence[SegmentFile], stops: Callable[[], bool]
) -> Mapping[Path, SegmentScan]:
    """Reads all files.

    Raises `InvalidInputError` for one that cannot be read, `RefusedError` if they have more than fits into memory,
    `StopAsked` once `stops()`.
    """

    sizes = [file.size_bytes + SCAN_BYTES for file in files]

    def scan() -> list[SegmentScan]:
        return done(session, files, _scanned, sizes)

    scans = stoppable(session, scan, stops) if sum(sizes) > LEAST_BYTES else [*_scanned_here(files, stops)]
    if sum(found.facts for found in scans) > MOST_FACTS:
        raise too_many_facts(f"{len(scans)} segments have")
    return {file.path: found for file, found in zip(files, scans, strict=True)}


def _scanned_here(files: Sequence[SegmentFile], stops: Callable[[], bool]) -> Iterator[SegmentScan]:
    """So little that a job of Spark would take longer; a directory may have thousands of such topics."""
    for file in files:
        if stops():
            raise StopAsked
        yield _scanned(file)


def done(
    session: SparkSession, tasks: Sequence[T], run: Callable[[T], R], sizes: Sequence[int] | None = None
) -> list[R]:
    """What `run` returns for each, in this order; each has a task of Spark, but small ones share one by their `sizes`.

    Raises the first error of one of them.
    """
    with job_errors():
        rows = _frame(session, [*enumerate(tasks)], sizes).mapInArrow(_Run(run), f"{RESULT} binary").collect()
    found = dict(pickle.loads(row[RESULT]) for row in rows)
    results = [found[number] for number in range(len(tasks))]
    for result in results:
        if isinstance(result, LithifyError):
            raise result
    return results


def copied_segments(session: SparkSession, copies: Sequence[SegmentCopy], copying: Copying) -> tuple[StagedLog, ...]:
    """Writes the records of all; returns logs by partition and offset. Raises the first error that a task returned."""
    with job_errors():
        sizes = [copy.whole.end + COPY_BYTES for copy in copies]
        return staged_by(_frame(session, copies, sizes).mapInArrow(_Copy(copying), f"{RESULT} binary"))


def _scanned(file: SegmentFile) -> SegmentScan:
    with reading(file.path), opened(file.path) as data:
        return scanned(data, cuts=file.cuts, offsets=file.offsets, reads_records=file.reads_records, end=file.end)


@dataclass(frozen=True, slots=True)
class _Run:
    run: Callable[[Any], Any]

    def __call__(self, batches: Batches) -> Batches:
        return in_worker(self._results)(batches)

    def _results(self, batches: Batches) -> Batches:
        for number, task in _tasks(batches):
            try:
                yield _row((number, self.run(task)))
            except LithifyError as error:
                yield _row((number, error))


@dataclass(frozen=True, slots=True)
class _Copy:
    copying: Copying

    def __call__(self, batches: Batches) -> Batches:
        return in_worker(self._copied)(batches)

    def _copied(self, batches: Batches) -> Batches:
        for task in _tasks(batches):
            for result in results_of(self.copying, task.tables()):
                yield _row(result)


def _frame(session: SparkSession, tasks: Sequence[object], sizes: Sequence[int] | None) -> DataFrame:
    parts: Sequence[int] = range(len(tasks))
    if sizes is not None:
        parts = spread(sizes, FULL_BYTES, session.sparkContext.defaultParallelism, least=LEAST_BYTES)
    return placed_tasks(task_frame(session, parts, tasks), partitions(parts)).select(PAYLOAD)


def _tasks(batches: Batches) -> Iterator[Any]:
    for (payload,) in columns(batches, PAYLOAD):
        yield pickle.loads(payload)


def _row(result: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(result)], pa.binary())], [RESULT])
