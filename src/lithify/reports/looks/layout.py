"""Where the segments of a topic's logs lie along the offset axis. The field names are the JSON keys.

    runs   [clean, 40 segments][clean, 12][dirty, 3][waiting, 1]   of one part, together where many
    steps        tombstones below 80, covered at 10:00      below 120, covered at 11:00

Bytes are compressed sizes, times epoch ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from lithify.reports.report import Report


class Part(StrEnum):
    """What of its log a segment belongs to."""

    CLEAN = "clean"
    DIRTY = "dirty"
    """A round may compact it now."""
    WAITING = "waiting"
    """It is above the horizon."""


@dataclass(frozen=True, slots=True)
class SegmentRun:
    """A segment, or neighbours of the same part of the log."""

    part: Part
    base_offset: int
    end_offset: int
    segments: int
    records: int
    """Without masked ones."""
    bytes: int
    tombstones: int
    """Null values in the files."""
    masked_records: int
    """Dead records that masks hide."""


@dataclass(frozen=True, slots=True)
class TombstoneStep:
    """Tombstones from the end of the step before it, which a round covered first at `covered_ms`."""

    end_offset: int
    tombstones: int
    """At most."""
    covered_ms: int
    expires_ms: int | None
    """Null while groups hold them for ever."""


@dataclass(frozen=True, slots=True)
class LogLayout:
    """One log. Offsets as in `LogStatus`."""

    partition: int
    log_start_offset: int
    delete_retention_point: int
    first_dirty_offset: int
    horizon: int
    log_end_offset: int
    segments: int
    runs: tuple[SegmentRun, ...]
    view: tuple[SegmentRun, ...]
    """The same of the compacted view; empty in place."""
    steps: tuple[TombstoneStep, ...]


@dataclass(frozen=True, slots=True)
class TopicLayout(Report):
    """The logs of a topic at one version."""

    topic: str
    version: int
    now_ms: int
    logs: tuple[LogLayout, ...]
