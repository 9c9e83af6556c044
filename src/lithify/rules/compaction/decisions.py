"""What becomes of every segment below the horizon, once its losers are counted: one value each (C39).

    before     [ a ][ b ][c][d][e][ f ]      b has losers, c to e are small, nothing of f is left
    decided     Keep  Rewrite(b)  Rewrite(c, d, e)  Drop(f)
    after      [ a ][ b'][   cde  ]

Order is kept and only neighbours merge, so the offsets of two segments never interleave.

Five match on it: `segments_of` here (which segments), `outcome.applied` (what replaces them), a law of the audit
(what must be left), the report (what is counted as what) and the picture in `scripts`. A segment that
stays but hides its dead records is one more case, `Mask(segment, dead)`: `decide` gives it instead of a
`Rewrite`, the type checker names these five, and a function beside `rewrites_of` hands it to the engine,
which knows the dead positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from lithify.model.segment import Segment

MANY_SMALL = 8
"""So many neighbours merge even if one of them is larger than the others together (C39)."""


@dataclass(frozen=True, slots=True)
class CountedSegment:
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
class Keep:
    """The segment stays as it is, by reference."""

    segment: Segment


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Neighbours, or one alone, whose survivors become one segment (or more, above `segment.bytes`)."""

    sources: tuple[CountedSegment, ...]

    @property
    def segments(self) -> tuple[Segment, ...]:
        return tuple(source.segment for source in self.sources)

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
class Drop:
    """Nothing of the segment survives: it goes, and nothing is written in its place."""

    segment: Segment


Decision = Keep | Rewrite | Drop


def decide(counted: Iterable[CountedSegment], *, segment_bytes: int, moves: bool) -> tuple[Decision, ...]:
    """What becomes of `counted`, the segments of one log in offset order; in the order of their beginnings.

    `moves`: the round moves the first dirty offset. A round that neither moves it nor removes a
    record merges nothing, so that a second round finds nothing to do (C41).
    """
    counted = tuple(counted)
    left = tuple(c for c in counted if c.survivors > 0)
    merges = moves or any(c.has_losers for c in counted)
    pieces = _pieces(left, segment_bytes) if merges else ((c,) for c in left)
    decisions = [*map(_decision, pieces), *(Drop(c.segment) for c in counted if c.survivors == 0)]
    return tuple(sorted(decisions, key=lambda decision: segments_of(decision)[0].base_offset))


def _decision(piece: tuple[CountedSegment, ...]) -> Decision:
    return Rewrite(piece) if len(piece) > 1 or piece[0].has_losers else Keep(piece[0].segment)


def segments_of(decision: Decision) -> tuple[Segment, ...]:
    """The segments that it is about."""
    match decision:
        case Keep(segment) | Drop(segment):
            return (segment,)
        case Rewrite():
            return decision.segments
        case _:
            assert_never(decision)


def rewrites_of(decisions: Iterable[Decision]) -> tuple[Rewrite, ...]:
    """What an engine has to write for them, in their order."""
    return tuple(decision for decision in decisions if isinstance(decision, Rewrite))


def _pieces(counted: tuple[CountedSegment, ...], segment_bytes: int) -> Iterator[tuple[CountedSegment, ...]]:
    """Cuts the log into what merges and what stays alone.

    From the start of the log on, each piece is the longest that merges. What is left are pieces of
    which no neighbours could merge any more.
    """
    start = 0
    while start < len(counted):
        end = _merge_end(counted, start, segment_bytes)
        yield counted[start:end]
        start = end


def _merge_end(counted: tuple[CountedSegment, ...], start: int, segment_bytes: int) -> int:
    """The end of the longest run from `start` on that merges; a run of one always does."""
    end = start + 1
    total = largest = 0
    for index in range(start, len(counted)):
        size = counted[index].bytes_left
        total += size
        largest = max(largest, size)
        if total > segment_bytes:
            break
        if largest <= total - largest or index + 1 - start >= MANY_SMALL:
            end = index + 1
    return end
