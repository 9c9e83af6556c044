"""What a reader reads of one version of a log: parts of segments, in offset order (C33, C37).

view         x  x    x |             a reader of compacted data gets the view below D
backlog   S xxxxxxxxxx D xxxxx E     and the backlog from D on; others get the backlog
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.errors import RefusedError
from lithify.model.segment import Segment
from lithify.model.topic.log import LastRecord, LogState


@dataclass(frozen=True, slots=True)
class Reading:
    """How a log is read: whether in new versions as well, and whether from compacted data or from the backlog."""

    follow: bool = False
    compacted: bool = False

    def check_version(self, version: int | None) -> None:
        """Raises `RefusedError` if a version that the user has named is to be followed."""
        if version is not None and self.follow:
            raise RefusedError(f"version {version} does not change, so there is nothing to follow")

    def start(self, log: LogState) -> int:
        """The first offset of what is read (C37)."""
        return log.compacted_start if self.compacted else log.log_start_offset

    def last_record(self, log: LogState) -> LastRecord | None:
        """The last record of what is read (C36)."""
        return log.compacted_last_record if self.compacted else log.last_record

    def reads_view(self, log: LogState) -> bool:
        return self.compacted and log.view is not None


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment that is read from an offset on."""

    segment: Segment
    start_offset: int


def pieces_of(
    log: LogState, segments: tuple[Segment, ...], view: tuple[Segment, ...], how: Reading
) -> tuple[Piece, ...]:
    """What is read of a log with these segments, including its view's, in offset order (C33)."""
    if not how.reads_view(log):
        return tuple(Piece(s, log.log_start_offset) for s in segments)
    dirty = log.first_dirty_offset
    tail = tuple(Piece(s, dirty) for s in segments if s.end_offset > dirty)
    return tuple(Piece(s, log.deleted_below) for s in view) + tail
