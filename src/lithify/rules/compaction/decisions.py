"""What becomes of every segment below the horizon, once its losers are counted: one value each (C39).

    before     [ a ][ b ][c][d][e][ f ][ g ]     b has losers, g few, c to e are small, nothing of f is left
    decided     Keep  Rewrite(b)  Rewrite(c, d, e)  Drop(f)  AddMask(g)
    after      [ a ][ b'][   cde  ][ g: mask ]

Order is kept and only neighbours merge, so the offsets of two segments never interleave. What masks hide still takes
space: at most `segment.max.dead.ratio` of a segment, and half of that of all segments together. A round that may write
a limited number of bytes masks more, and later ones rewrite what it has left.

Five match on it: `segments_of` here (which segments), `outcome.applied` (what replaces them), a law of the audit
(what must be left), the report (what is counted as what) and the picture in `scripts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from lithify.model.segment import Segment
from lithify.model.settings.topic_settings import TopicSettings

MANY_SMALL = 8
"""So many neighbours merge even if one of them is larger than the others together (C39)."""

MASKED_FROM = 100
"""A segment of less than this part of `segment.bytes` is rewritten: a mask would save little, and is one file more."""


@dataclass(frozen=True, slots=True)
class CountedSegment:
    """A segment below the horizon and how many of its records survive."""

    segment: Segment
    survivors: int

    @property
    def has_losers(self) -> bool:
        return self.survivors < self.segment.records

    @property
    def dead(self) -> int:
        """Its losers, and the records that its mask hides already."""
        return self.segment.records_in_file - self.survivors

    @property
    def dead_share(self) -> float:
        """The part of the records in its file, from 0 to 1."""
        return self.dead / self.segment.records_in_file

    @property
    def bytes_left(self) -> int:
        """Its size without the dead: exact if it has none, else in proportion."""
        if not self.dead:
            return self.segment.size_bytes
        return -(-self.segment.size_bytes * self.survivors // self.segment.records_in_file)

    @property
    def dead_bytes(self) -> int:
        """The size of the dead, in proportion."""
        return self.segment.size_bytes - self.bytes_left


@dataclass(frozen=True, slots=True)
class Keep:
    """The segment remains as it is, by reference."""

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
class AddMask:
    """The segment remains, and a mask hides its losers, with what its mask before hid."""

    source: CountedSegment

    @property
    def segments(self) -> tuple[Segment, ...]:
        return (self.source.segment,)

    @property
    def partition(self) -> int:
        return self.source.segment.partition

    @property
    def survivors(self) -> int:
        return self.source.survivors


@dataclass(frozen=True, slots=True)
class Drop:
    """Nothing of the segment survives: it is removed, and nothing is written in its place."""

    segment: Segment


Decision = Keep | Rewrite | AddMask | Drop


@dataclass(frozen=True, slots=True)
class MaskLimits:
    """Which segments may have masks, and what these may hide: nothing, by default."""

    max_dead_ratio: float = 0.0
    from_bytes: int = 0
    log_start: int = 0
    """Records below it are to be taken out of storage (C26)."""

    @staticmethod
    def of(settings: TopicSettings, log_start: int) -> MaskLimits:
        """The limits of a topic."""
        return MaskLimits(settings.segment_max_dead_ratio, settings.segment_bytes // MASKED_FROM, log_start)

    def still_allow(self, source: CountedSegment) -> bool:
        """Whether what a mask hides may remain: below the log start it may not, even if no loser is left there."""
        return source.segment.base_offset >= self.log_start and source.dead_share <= self.max_dead_ratio

    def allow(self, source: CountedSegment) -> bool:
        """Whether a mask may hide the losers of a segment, as far as it alone goes."""
        segment = source.segment
        return segment.size_bytes >= self.from_bytes and self.still_allow(source) and self.can_wait(source)

    def can_wait(self, source: CountedSegment) -> bool:
        """Whether a mask may hide the losers of a segment, however many, until a later round rewrites it.

        Metadata of a file tells how many keyless records are in it: with a mask it would not tell how many are left.
        """
        segment = source.segment
        return self.max_dead_ratio > 0 and segment.null_keys == 0 and segment.base_offset >= self.log_start

    def exceeded_by(self, segments: Iterable[Segment], *, together: bool) -> tuple[Segment, ...]:
        """The segments of a log that a round rewrites for what their masks hide alone: of each or, `together`, of all.

        All together are limited where rounds rewrite in parts, so that the last of them leaves no more than one round.
        """
        counted = tuple(CountedSegment(segment, segment.records) for segment in segments if segment.mask or together)
        written = _too_dead(tuple((c,) for c in counted), self, together=together)
        return tuple(c.segment for c in counted if c in written)


def decide(
    counted: Iterable[CountedSegment],
    *,
    segment_bytes: int,
    moves: bool,
    masks: MaskLimits = MaskLimits(),
    rewrite_bytes: int | None = None,
) -> tuple[Decision, ...]:
    """What becomes of `counted`, the segments of one log in offset order; in the order of their beginnings.

    `moves`: the round moves the first dirty offset. A round that neither moves it nor removes a
    record, also from where a mask hid it, merges nothing, so that a second round finds nothing to do (C41).
    With `rewrite_bytes` it rewrites at most this number of bytes, one piece at least and what cannot wait; masks hide
    the losers of the others.
    """
    counted = tuple(counted)
    left = tuple(c for c in counted if c.survivors > 0)
    exceeded = masks.exceeded_by((c.segment for c in counted), together=rewrite_bytes is not None)
    merges = moves or bool(exceeded) or any(c.has_losers for c in counted)
    pieces = tuple(_pieces(left, segment_bytes) if merges else ((c,) for c in left))
    written = _too_dead(pieces, masks, together=merges)
    rewrites = tuple(piece for piece in pieces if len(piece) > 1 or piece[0] in written)
    now = set(rewrites if rewrite_bytes is None else _first(rewrites, rewrite_bytes))
    decided: list[Decision] = [Drop(c.segment) for c in counted if c.survivors == 0]
    for piece in pieces:
        decided += [Rewrite(piece)] if piece in now else [_not_rewritten(c, masks) for c in piece]
    return tuple(sorted(decided, key=lambda decision: segments_of(decision)[0].base_offset))


def _first(rewrites: Sequence[tuple[CountedSegment, ...]], most_bytes: int) -> Iterator[tuple[CountedSegment, ...]]:
    """One of the pieces, and others that fit into this number of bytes with it.

    Pieces with the smallest share of dead bytes are taken first: a later round begins only where masks hide too much,
    and would not begin for neighbours that merge.
    """
    left = most_bytes
    for number, piece in enumerate(sorted(rewrites, key=_dead_share)):
        size = sum(c.bytes_left for c in piece)
        if number == 0 or size <= left:
            left -= size
            yield piece


def _dead_share(piece: tuple[CountedSegment, ...]) -> float:
    return sum(c.dead_bytes for c in piece) / max(1, sum(c.segment.size_bytes for c in piece))


def _not_rewritten(source: CountedSegment, masks: MaskLimits) -> Decision:
    """A segment that remains, for now or for long, unless it cannot wait."""
    if not source.has_losers:
        return Keep(source.segment)
    return AddMask(source) if masks.can_wait(source) else Rewrite((source,))


def _too_dead(
    pieces: Sequence[tuple[CountedSegment, ...]], masks: MaskLimits, *, together: bool
) -> set[CountedSegment]:
    """The segments that do not merge and are rewritten, as no mask may hide their dead.

    All dead `together` are limited, too. Segments with the largest shares of dead records are rewritten first, so that
    what is rewritten is spread over the rounds.
    """
    alone = [piece[0] for piece in pieces if len(piece) == 1 and piece[0].dead]
    written = {c for c in alone if not masks.still_allow(c) or (c.has_losers and not masks.allow(c))}
    if not together:
        return written
    masked = sorted((c for c in alone if c not in written), key=lambda c: c.dead_share)
    dead_bytes = sum(c.dead_bytes for c in masked)
    size_bytes = dead_bytes + sum(c.bytes_left for piece in pieces for c in piece)
    while masked and dead_bytes > size_bytes * masks.max_dead_ratio / 2:
        most = masked.pop()
        written.add(most)
        dead_bytes -= most.dead_bytes
        size_bytes -= most.dead_bytes
    return written


def segments_of(decision: Decision) -> tuple[Segment, ...]:
    """The segments that it is about."""
    match decision:
        case Keep(segment) | Drop(segment):
            return (segment,)
        case AddMask() | Rewrite():
            return decision.segments
        case _:
            assert_never(decision)


def work_of(decisions: Iterable[Decision]) -> tuple[Rewrite | AddMask, ...]:
    """What an engine has to write for them, in their order."""
    return tuple(decision for decision in decisions if isinstance(decision, Rewrite | AddMask))


def _pieces(counted: tuple[CountedSegment, ...], segment_bytes: int) -> Iterator[tuple[CountedSegment, ...]]:
    """Cuts the log into what merges and what remains alone.

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
