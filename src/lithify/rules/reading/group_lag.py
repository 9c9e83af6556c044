"""What a group has left to read in one version of a log (C59).

    [ seg ][ seg ][   seg   ][seg]|
                     ▲ position
                     [ counted ]  whole      only the segment that the position is within has to be read

Of a segment with a mask metadata tells how many records are left, but not when the oldest of them is from: it is read
if that may be older than all others.

Offsets that rounds have removed do not count. Positions of readers of compacted data count the view (C33).
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.model.segment import Segment
from lithify.model.topic.log import LogState
from lithify.rules.reading.pieces import Piece, Reading, pieces_of


@dataclass(frozen=True, slots=True)
class Left:
    """Records that are left, and the timestamp of the oldest of them, in epoch ms."""

    records: int = 0
    oldest_ms: int | None = None

    def __add__(self, other: Left) -> Left:
        oldest = [ms for ms in (self.oldest_ms, other.oldest_ms) if ms is not None]
        return Left(self.records + other.records, min(oldest, default=None))


@dataclass(frozen=True, slots=True)
class LeftByMetadata:
    """What is left as far as metadata says, the parts of segments to count, and masked segments, the oldest first."""

    left: Left
    parts: tuple[Piece, ...]
    masked: tuple[Segment, ...]
    """Their records are in `left`, without a time: none of them is older than its segment says."""


def left_from(
    log: LogState, segments: tuple[Segment, ...], view: tuple[Segment, ...], how: Reading, offset: int
) -> LeftByMetadata:
    """What is left from `offset` on."""
    left, parts, masked = Left(), [], []
    for piece in pieces_of(log, segments, view, how):
        segment, start = piece.segment, max(piece.start_offset, offset)
        if start > segment.base_offset:
            parts += [Piece(segment, start)] if start < segment.end_offset else []
        elif segment.mask is None:
            left += Left(segment.records, segment.min_timestamp_ms)
        else:
            left += Left(segment.records)
            masked.append(segment)
    return LeftByMetadata(left, tuple(parts), tuple(sorted(masked, key=lambda s: s.min_timestamp_ms)))
