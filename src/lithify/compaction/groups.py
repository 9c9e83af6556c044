"""Which segments a round keeps, rewrites, merges or drops, once the losers are counted (C39).

    before   [ a ][ b ][c][d][e]      b has losers, c to e are small
    after    [ a ][ b'][   cde  ]     a kept by reference, b rewritten, c to e merged

Order is kept and only neighbours merge, so the offsets of two segments never interleave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lithify.model.segment import Segment

MANY_SMALL = 8
"""So many neighbours merge even if one of them is larger than the others together (C39)."""


@dataclass(frozen=True, slots=True)
class SegmentOutcome:
    """A segment below the horizon and how many of its records survive."""

    segment: Segment
    survivors: int

    @property
    def has_losers(self) -> bool:
        return self.survivors < self.segment.records

    @property
    def bytes_left(self) -> int:
        """Its size without the losers: exact if it has none, else in proportion."""
        if not self.has_losers:
            return self.segment.size_bytes
        return -(-self.segment.size_bytes * self.survivors // self.segment.records)


@dataclass(frozen=True, slots=True)
class RewriteGroup:
    """Consecutive segments whose survivors become one segment (or more, above `segment.size_bytes`)."""

    sources: tuple[SegmentOutcome, ...]

    @property
    def partition(self) -> int:
        return self.sources[0].segment.partition

    @property
    def survivors(self) -> int:
        return sum(source.survivors for source in self.sources)

    @property
    def bytes_left(self) -> int:
        return sum(source.bytes_left for source in self.sources)


@dataclass(frozen=True, slots=True)
class Grouping:
    """What becomes of the segments of one log below its horizon."""

    kept: tuple[Segment, ...]
    groups: tuple[RewriteGroup, ...]
    dropped: tuple[Segment, ...]
    """Segments in which nothing survives: removed, nothing written in their place."""

    @property
    def removed(self) -> tuple[Segment, ...]:
        rewritten = (source.segment for group in self.groups for source in group.sources)
        return (*rewritten, *self.dropped)

    @property
    def changes(self) -> bool:
        return bool(self.groups or self.dropped)


def group_segments(outcomes: tuple[SegmentOutcome, ...], *, segment_bytes: int, moves: bool) -> Grouping:
    """Decides what becomes of `outcomes`, the segments of one log in offset order.

    `moves`: the round moves the first dirty offset. A round that neither moves it nor removes a
    record merges nothing, so that a second round finds nothing to do (C41).
    """
    dropped = tuple(o.segment for o in outcomes if o.survivors == 0)
    left = tuple(o for o in outcomes if o.survivors > 0)
    if not moves and not any(o.has_losers for o in outcomes):
        return Grouping(tuple(o.segment for o in left), (), dropped)
    kept: list[Segment] = []
    groups: list[RewriteGroup] = []
    for piece in _pieces(left, segment_bytes):
        if len(piece) > 1 or piece[0].has_losers:
            groups.append(RewriteGroup(piece))
        else:
            kept.append(piece[0].segment)
    return Grouping(tuple(kept), tuple(groups), dropped)


def _pieces(outcomes: tuple[SegmentOutcome, ...], segment_bytes: int) -> Iterator[tuple[SegmentOutcome, ...]]:
    """Cuts the log into what merges and what stays alone.

    From the start of the log on, each piece is the longest that merges. What is left are pieces of
    which no neighbours could merge any more.
    """
    start = 0
    while start < len(outcomes):
        end = _merge_end(outcomes, start, segment_bytes)
        yield outcomes[start:end]
        start = end


def _merge_end(outcomes: tuple[SegmentOutcome, ...], start: int, segment_bytes: int) -> int:
    """The end of the longest run from `start` on that merges; a run of one always does."""
    end = start + 1
    total = largest = 0
    for index in range(start, len(outcomes)):
        size = outcomes[index].bytes_left
        total += size
        largest = max(largest, size)
        if total > segment_bytes:
            break
        if largest <= total - largest or index + 1 - start >= MANY_SMALL:
            end = index + 1
    return end
