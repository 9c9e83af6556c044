"""What a round over the files of a log reads and replaces, by the rules of Kafka's cleaner.

segments   0 ── 1000 ── 2000 ── 3000 ── 4000 active
clean      ╰───────────╯╰ dirty ╯│
                        first     end: what is above is neither changed nor asked for winners
groups     [ 0 + 1000 ]  [ 2000 ]      neighbours that fit into segment.bytes become one segment
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from lithify.kafka_log.cleaning.clean_settings import CleanSettings
from lithify.kafka_log.cleaning.producers import LastBatch
from lithify.kafka_log.scanned_log import ScannedLog
from lithify.kafka_log.segment_scan import SegmentScan
from lithify.kafka_log.transactions import open_before

ACTIVE: Final = "active segment"
STABLE: Final = "last stable offset"
REPLICATED: Final = "high watermark"
LAG: Final = "min.compaction.lag.ms"
LARGEST_DELTA: Final = 2**31 - 1
"""Between the offsets of a segment, as its indexes have them."""


@dataclass(slots=True)
class SegmentFacts:
    """What a plan has to know of a segment and its files; sizes are in bytes."""

    path: Path
    base_offset: int
    scan: SegmentScan
    sizes: tuple[int, int, int]
    """Of the segment, and its indexes of offsets and times."""
    modified_ns: int
    newest_ms: int = -1
    """The largest timestamp of its batches."""
    producers: dict[int, LastBatch] = field(default_factory=dict)
    is_of_old_versions: bool = False
    """Whether some of it is of the versions 0 or 1."""

    @property
    def size(self) -> int:
        return self.sizes[0]

    @property
    def last_delta(self) -> int:
        """From its base offset to its last one."""
        return (self.scan.end_offset or self.base_offset) - 1 - self.base_offset

    @property
    def largest_timestamp_ms(self) -> int:
        return self.newest_ms if self.newest_ms >= 0 else self.modified_ns // 1_000_000


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """Offsets of a round, the groups of segments that it replaces, and by segment the transactions open before it."""

    first_dirty: int
    end: int
    limited_by: str
    groups: tuple[tuple[SegmentFacts, ...], ...] = ()
    open_before: Mapping[int, Mapping[int, int]] = field(default_factory=dict)

    @property
    def segments(self) -> tuple[SegmentFacts, ...]:
        return tuple(segment for group in self.groups for segment in group)


def clean_plan(log: ScannedLog, segments: Sequence[SegmentFacts], settings: CleanSettings, now_ms: int) -> CleanPlan:
    """The plan for a log whose `segments` are in order; without groups where nothing is dirty below the end.

    A segment that contains the first dirty offset is read from its beginning, which removes no less.
    """
    bases = [segment.base_offset for segment in segments]
    noted = log.folder.first_dirty
    first_dirty = log.start_offset if noted is None or not log.start_offset <= noted <= log.end_offset else noted
    limits = [
        (bases[-1], ACTIVE),
        (log.stable_end, STABLE),
        (log.folder.replicated_to or 0, REPLICATED),
        *_lag_limit(segments, first_dirty, settings, now_ms),
    ]
    limit, limited_by = min(limits)
    end = max((base for base in bases if base <= limit), default=bases[0])
    if end <= first_dirty:
        return CleanPlan(first_dirty, first_dirty, limited_by)
    below = [segment for segment in segments if segment.base_offset < end]
    opens = zip(bases, open_before(segment.scan.transactions for segment in segments), strict=True)
    first = max(base for base in bases if base <= max(first_dirty, bases[0]))
    return CleanPlan(first, end, limited_by, tuple(_groups(below, end, settings)), dict(opens))


def _lag_limit(
    segments: Sequence[SegmentFacts], first_dirty: int, settings: CleanSettings, now_ms: int
) -> list[tuple[int, str]]:
    youngest_ms = now_ms - settings.min_compaction_lag_ms
    for segment, following in pairwise(segments):
        is_dirty = following.base_offset > first_dirty
        if settings.min_compaction_lag_ms > 0 and is_dirty and segment.largest_timestamp_ms > youngest_ms:
            return [(segment.base_offset, LAG)]
    return []


def _groups(segments: Sequence[SegmentFacts], end: int, settings: CleanSettings) -> list[tuple[SegmentFacts, ...]]:
    """Neighbours whose files together have at most the sizes that the topic allows for one segment."""
    limits = (settings.segment_bytes, settings.segment_index_bytes, settings.segment_index_bytes)
    groups = list[list[SegmentFacts]]()
    sums: tuple[int, ...] = ()
    ends = [*(segment.base_offset for segment in segments[1:]), end]
    for segment, next_base in zip(segments, ends, strict=True):
        together = tuple(a + b for a, b in zip(sums, segment.sizes, strict=True)) if groups else segment.sizes
        fits = bool(groups) and all(size <= most for size, most in zip(together, limits, strict=True))
        if fits and (not segment.size or next_base - 1 - groups[-1][0].base_offset <= LARGEST_DELTA):
            groups[-1].append(segment)
            sums = together
        else:
            groups.append([segment])
            sums = segment.sizes
    return [tuple(group) for group in groups]
