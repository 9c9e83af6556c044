"""What a group has left to read in one version of a log (C59).

    [ seg ][ seg ][   seg   ][seg]|
                     ▲ position
                     [ counted ]  whole      only the segment that the position is within has to be read

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


def left_from(
    log: LogState, segments: tuple[Segment, ...], view: tuple[Segment, ...], how: Reading, offset: int
) -> tuple[Left, tuple[Piece, ...]]:
    """What is left from `offset` on as far as metadata says, and the parts of segments that have to be counted."""
    whole, parts = Left(), []
    for piece in pieces_of(log, segments, view, how):
        segment, start = piece.segment, max(piece.start_offset, offset)
        if start <= segment.base_offset:
            whole += Left(segment.records, segment.min_timestamp_ms)
        elif start < segment.end_offset:
            parts.append(Piece(segment, start))
    return whole, tuple(parts)
