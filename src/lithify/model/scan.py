"""What a job reads of topics, and how that is divided into tasks: values that driver and tasks share.

    Subscription + Bounds ──► Offsets [start, end) ──► ScanTask  ScanTask  ScanTask ...
                                                         └ ScanPiece: a segment, from .. to

Offsets are as Spark's Kafka source writes them: `{topic: {partition: offset}}`, `end` exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lithify.model.cursor import AtTime, Start
from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.model.topic.state import TopicState

Offsets = Mapping[str, Mapping[int, int]]
"""By topic and partition, the offset from which to read, or before which to stop."""


@dataclass(frozen=True, slots=True)
class Listed:
    """Topics by name; each of them must exist."""

    topics: tuple[TopicName, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """All topics whose whole name, as printed or as stored, a regular expression matches, also those created later."""

    pattern: str


Subscription = Listed | Matching


@dataclass(frozen=True, slots=True)
class Everywhere:
    """One position for every log."""

    position: Start


@dataclass(frozen=True, slots=True)
class PerLog:
    """A position for each log, by topic and partition; a log that is not named has none."""

    positions: Mapping[str, Mapping[int, Start]]


Bound = Everywhere | PerLog


@dataclass(frozen=True, slots=True)
class AsOfVersion:
    """A topic as a retained version has it."""

    version: int


@dataclass(frozen=True, slots=True)
class AsOfPoint:
    """Logs up to a point, with all that counted there (C69): an offset of one log, a time, or offsets by topic."""

    at: int | AtTime | Mapping[str, Mapping[int, int]]


AsOf = AsOfVersion | AsOfPoint


@dataclass(frozen=True, slots=True)
class Filters:
    """Bounds of the wanted records. They skip files, and never decide on a single record.

    Offsets in [min_offset, end_offset), timestamps in epoch ms in [min_timestamp_ms, max_timestamp_ms].
    """

    partitions: frozenset[int] | None = None
    min_offset: int | None = None
    end_offset: int | None = None
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None

    def clipped(self, start: int, end: int) -> tuple[int, int]:
        """The offsets of [start, end) that may be wanted; empty if the first is not below the second."""
        low = start if self.min_offset is None else max(start, self.min_offset)
        high = end if self.end_offset is None else min(end, self.end_offset)
        return low, high

    def may_be_in(self, segment: Segment) -> bool:
        """Whether a record of the segment may have a timestamp that is wanted."""
        too_old = self.min_timestamp_ms is not None and segment.max_timestamp_ms < self.min_timestamp_ms
        too_new = self.max_timestamp_ms is not None and segment.min_timestamp_ms > self.max_timestamp_ms
        return not (too_old or too_new)


@dataclass(frozen=True, slots=True)
class ScanSettings:
    """How topics are read and divided into tasks.

    `min_tasks` are made where there are so many offsets to read, each of `max_task_offsets` at most; None leaves it to
    the bytes. Without `fail_on_data_loss` a position that is no longer in a log means the nearest that is. A log
    without a record at or after the time to start at is an error, unless `latest_without_match`.
    """

    compacted: bool = False
    fail_on_data_loss: bool = True
    latest_without_match: bool = False
    min_tasks: int | None = None
    max_task_offsets: int | None = None
    filters: Filters = Filters()
    assigned: Mapping[str, frozenset[int]] | None = None
    """The partitions to read by topic; None for all."""

    def partitions(self, state: TopicState) -> Sequence[int]:
        """The partitions of a topic to read. Raises `UnknownTopicError` for an assigned one that does not exist."""
        if self.assigned is None:
            return state.partitions
        chosen = sorted(self.assigned.get(str(state.name), ()))
        for partition in chosen:
            state.check_partition(partition)
        return chosen


@dataclass(frozen=True, slots=True)
class ScanPiece:
    """The records of a segment with offsets in [start_offset, end_offset)."""

    segment: Segment
    start_offset: int
    end_offset: int

    @property
    def offsets(self) -> int:
        return self.end_offset - self.start_offset

    @property
    def size_bytes(self) -> int:
        """Bytes of the file that these offsets are likely to take, at least 1."""
        whole = self.segment.end_offset - self.segment.base_offset
        return max(1, self.segment.size_bytes * self.offsets // max(1, whole))

    def split(self, parts: int) -> tuple[ScanPiece, ...]:
        """Divides it into that number of pieces with about as many offsets each, or fewer if there are not enough."""
        cuts = [self.start_offset + self.offsets * n // parts for n in range(parts + 1)]
        return tuple(ScanPiece(self.segment, a, b) for a, b in pairwise(cuts) if a < b)


@dataclass(frozen=True, slots=True)
class ScanTask:
    """What one task reads: pieces of one log in offset order, as `version` of the topic names them."""

    topic: str
    partition: int
    version: int
    pieces: tuple[ScanPiece, ...]
