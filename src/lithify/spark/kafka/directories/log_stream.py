"""Streams one topic of log directories in batches of segments, each of which is copied and committed.

    segments left of all partitions ─► batch (some GiB) ─► tasks ─► commit ─► next batch ─► the end

Only the log ends of the copy say how far it is, so that another import goes on where this one was killed (C6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment
from lithify.model.staged import StagedLog
from lithify.ports.source import Copying, OnBatch
from lithify.spark.batch_thread import BatchThread
from lithify.spark.kafka.directories.log_tasks import SegmentCopy, copied_segments


@dataclass(frozen=True, slots=True)
class SegmentBatch:
    """Segments that are copied together; `ends` are where they end, by partition."""

    session: SparkSession
    job: str
    copies: tuple[SegmentCopy, ...]
    read_ends: Mapping[int, int]

    def copy(self, copying: Copying) -> tuple[StagedLog, ...]:
        """See `copied_segments`."""
        self.session.sparkContext.setJobGroup(self.job, "lithify kafka import", interruptOnCancel=True)
        return copied_segments(self.session, self.copies, copying)

    def ends(self) -> Mapping[int, int]:
        return self.read_ends

    def damaged(self) -> Mapping[int, tuple[int, Sequence[str]]]:
        return {}


def batches_of(
    logs: Mapping[int, ScannedLog], starts: Mapping[int, int], most_bytes: int, most_offsets: int
) -> Iterator[tuple[tuple[SegmentCopy, ...], Mapping[int, int]]]:
    """What to copy at once, and by partition where it ends; of all partitions the oldest segments first.

    A batch ends with the segment that brings it to one of the limits.
    """
    left = sorted(
        (number, partition, segment, end)
        for partition, log in logs.items()
        for number, (segment, end) in enumerate(_left(log, starts[partition]))
    )
    copies, ends, size, offsets = list[SegmentCopy](), dict[int, int](), 0, 0
    for _, partition, segment, end in left:
        start = max(starts[partition], segment.base_offset)
        committed = segment.committed(start, end, logs[partition].transactions)
        copies.append(SegmentCopy(partition, segment.path, segment.scan.whole, committed))
        ends[partition] = end
        size, offsets = size + segment.scan.whole.end, offsets + end - start
        if size >= most_bytes or offsets >= most_offsets:
            yield tuple(copies), ends
            copies, ends, size, offsets = [], {}, 0, 0
    if copies:
        yield tuple(copies), ends


def _left(log: ScannedLog, start: int) -> Iterator[tuple[ScannedSegment, int]]:
    """The segments with offsets from `start` on, and where the copy ends once each is copied."""
    bases = [segment.base_offset for segment in log.segments]
    ends = [min(base, log.stable_end) for base in [*bases[1:], log.stable_end]][: len(bases)]
    for segment, end in zip(log.segments, ends, strict=True):
        if end > max(start, segment.base_offset):
            yield segment, end


class SegmentStream(BatchThread):
    """Calls `on_batch` for each batch, to the end of the logs."""

    def __init__(
        self,
        session: SparkSession,
        job: str,
        batches: Iterator[tuple[tuple[SegmentCopy, ...], Mapping[int, int]]],
        on_batch: OnBatch,
    ) -> None:
        """`batches` are what `batches_of` returns."""
        super().__init__(session, job)
        self._batches, self._on_batch = batches, on_batch

    def _copy(self) -> None:
        for copies, ends in self._batches:
            if self._stopping.is_set():
                return
            self._on_batch(SegmentBatch(self._session, self._job, copies, ends))
