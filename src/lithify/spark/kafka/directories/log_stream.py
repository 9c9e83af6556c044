"""Streams one topic of log directories in batches of segments, each of which is copied and committed.

    segments left of all partitions ─► batch (some GiB) ─► tasks ─► commit ─► next batch ─► the end

Only the log ends of the copy say how far it is, so that another import goes on where this one was killed (C6).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event

from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lithify.errors import EngineError, LithifyError
from lithify.errors.redaction import one_line
from lithify.kafka_log.scanned_log import ScannedLog, ScannedSegment
from lithify.model.staged import StagedLog
from lithify.ports.source import Copying, OnBatch, StopAsked
from lithify.spark.kafka.batch_limit import BATCH_BYTES, BATCH_OFFSETS
from lithify.spark.kafka.directories.log_tasks import SegmentCopy, copied_segments
from lithify.spark.session.ended_session import JVM_GONE

STOPS_WITHIN_S = 5.0
"""Seconds to wait for a batch that was given up."""
ASKS_AGAIN_S = 0.25


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
        copies.append(SegmentCopy(partition, segment.path, segment.scan.whole_bytes, committed))
        ends[partition] = end
        size, offsets = size + segment.scan.whole_bytes, offsets + end - start
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


@dataclass(slots=True)
class SegmentStream:
    """A thread that calls `on_batch` for each batch."""

    session: SparkSession
    job: str
    logs: Mapping[int, ScannedLog]
    starts: Mapping[int, int]
    on_batch: OnBatch
    most_offsets: int = BATCH_OFFSETS
    _stopping: Event = field(default_factory=Event)
    _failure: Exception | None = None
    _thread: InheritableThread = field(init=False)

    def start(self) -> None:
        self._thread = InheritableThread(target=self._run, name=self.job, daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return bool(self._thread.is_alive())

    def stop(self) -> None:
        """Ends it in bounded time. A running batch is abandoned, unless its commit has begun.

        Spark cancels the jobs that run by then, and the thread may be about to start one: so it is asked again.
        """
        self._stopping.set()
        for _ in range(round(STOPS_WITHIN_S / ASKS_AGAIN_S)):
            with suppress(PySparkException, *JVM_GONE):
                self.session.sparkContext.cancelJobGroup(self.job)
            self._thread.join(ASKS_AGAIN_S)
            if not self.is_active:
                return

    def end(self) -> LithifyError | None:
        """The error that ended the stream, or None."""
        match self._failure:
            case None | LithifyError():
                return self._failure
            case error:
                return EngineError(f"{self.job}: {type(error).__name__}: {one_line(str(error), 300)}")

    def _run(self) -> None:
        try:
            for copies, ends in batches_of(self.logs, self.starts, BATCH_BYTES, self.most_offsets):
                if self._stopping.is_set():
                    return
                self.on_batch(SegmentBatch(self.session, self.job, copies, ends))
        except StopAsked:
            return
        except Exception as error:
            if not self._stopping.is_set() or isinstance(error, LithifyError):
                self._failure = error
