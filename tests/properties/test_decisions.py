"""The laws of what becomes of segments, for any segments and any losers (C39, C41)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lithify.model.segment import Mask
from lithify.rules.compaction.decisions import (
    MANY_SMALL,
    AddMask,
    CountedSegment,
    Decision,
    Drop,
    Keep,
    MaskLimits,
    Rewrite,
    decide,
    segments_of,
    work_of,
)
from support.builders import a_segment

LIMIT = 100


@st.composite
def counted_segments(draw: st.DrawFn) -> tuple[CountedSegment, ...]:
    """Segments of one log, most of them small, some with losers, some with nothing left."""
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 3, 5, 10, 20, 40, 60, 100, 130]), max_size=25))
    counted = []
    for index, size in enumerate(sizes):
        survivors = draw(st.sampled_from([10, 10, 10, 10, 7, 1, 0]))
        counted.append(CountedSegment(a_segment(f"s{index}", 10 * index, 10 * index + 10, size_bytes=size), survivors))
    return tuple(counted)


CASES = st.tuples(counted_segments(), st.booleans())


def decisions_of(case: tuple[tuple[CountedSegment, ...], bool]) -> tuple[Decision, ...]:
    counted, moves = case
    return decide(counted, segment_bytes=LIMIT, moves=moves)


def pieces(decisions: tuple[Decision, ...]) -> list[list[int]]:
    """What is left, in order: the sizes that each new or kept segment is made of."""
    sizes = []
    for decision in decisions:
        match decision:
            case Keep(segment):
                sizes.append([segment.size_bytes])
            case Rewrite(sources):
                sizes.append([source.bytes_left for source in sources])
            case Drop():
                pass
    return sizes


def changes(decisions: tuple[Decision, ...]) -> bool:
    return not all(isinstance(decision, Keep) for decision in decisions)


def merges(sizes: list[int]) -> bool:
    """C39, literally."""
    few = len(sizes) < MANY_SMALL
    return len(sizes) > 1 and sum(sizes) <= LIMIT and (max(sizes) <= sum(sizes) - max(sizes) or not few)


@given(CASES)
def test_every_segment_becomes_one_thing(case):
    """C6: kept, source of one rewrite, or dropped."""
    segments = [segment for decision in decisions_of(case) for segment in segments_of(decision)]
    assert sorted(segments, key=lambda s: s.base_offset) == [counted.segment for counted in case[0]]


@given(CASES)
def test_what_has_no_loser_stays_and_what_is_empty_goes(case):
    """C39: a segment without a loser is only touched to be merged."""
    decisions = decisions_of(case)
    assert {d.segment for d in decisions if isinstance(d, Drop)} == {c.segment for c in case[0] if c.survivors == 0}
    kept = [d.segment for d in decisions if isinstance(d, Keep)]
    assert all(c.segment not in kept for c in case[0] if c.has_losers)
    assert all(d.sources[0].has_losers for d in work_of(decisions) if len(d.sources) == 1)


@given(CASES)
def test_only_neighbours_merge_and_only_as_the_rule_says(case):
    """C39: order is kept, so the offsets of two segments never interleave."""
    left = [counted.segment for counted in case[0] if counted.survivors]
    for rewrite in work_of(decisions_of(case)):
        places = [left.index(segment) for segment in rewrite.segments]
        assert places == list(range(places[0], places[0] + len(places)))
        if len(places) > 1:
            assert merges([source.bytes_left for source in rewrite.sources])


@given(CASES)
def test_no_neighbours_are_left_that_could_merge(case):
    """C39: in a round that moves D or removes something."""
    decisions = decisions_of(case)
    if not case[1] and not changes(decisions):
        return
    sizes = [sum(piece) for piece in pieces(decisions)]
    for start in range(len(sizes)):
        for end in range(start + 2, len(sizes) + 1):
            assert not merges(sizes[start:end]), (sizes, start, end)


@given(CASES)
def test_deciding_again_changes_nothing(case):
    """C41: what a round leaves is left alone by the next one, even if that one moves D."""
    sizes = [sum(piece) for piece in pieces(decisions_of(case))]
    again = tuple(
        CountedSegment(a_segment(f"t{index}", 10 * index, 10 * index + 10, size_bytes=size), 10)
        for index, size in enumerate(sizes)
    )
    assert not changes(decide(again, segment_bytes=LIMIT, moves=False))
    if case[1] or changes(decisions_of(case)):
        assert not changes(decide(again, segment_bytes=LIMIT, moves=True))


@given(st.lists(st.integers(1, 8), min_size=1, max_size=200))
def test_the_work_of_merging_a_growing_log_stays_bounded(heads):
    """C39: every byte is rewritten a few times in its life, not once for every head that follows."""
    log: list[int] = []
    written = 0
    for head in heads:
        log.append(head)
        counted = tuple(
            CountedSegment(a_segment(f"s{i}", 10 * i, 10 * i + 10, size_bytes=size), 10) for i, size in enumerate(log)
        )
        decisions = decide(counted, segment_bytes=1000, moves=True)
        written += sum(rewrite.bytes_left for rewrite in work_of(decisions))
        log = [sum(piece) for piece in pieces(decisions)]
    assert written <= 11 * sum(heads)  # log2(1000), and one


@st.composite
def with_masks(draw: st.DrawFn) -> tuple[CountedSegment, ...]:
    """Segments of a hundred records in their files, some of which are masked already, and some more dead.

    They are of a few kinds, so that many are alike.
    """
    sizes, hiding, losing = st.sampled_from([1, 10, 60, 100, 130]), st.sampled_from([0, 0, 5, 30]), [0, 0, 1, 20, 70]
    kinds = draw(st.lists(st.tuples(sizes, hiding, st.sampled_from(losing)), min_size=1, max_size=4))
    counted = []
    for index, (size, hidden, lost) in enumerate(draw(st.lists(st.sampled_from(kinds), max_size=12))):
        segment = a_segment(f"s{index}", 100 * index, 100 * index + 100, size_bytes=size, records=100 - hidden)
        mask = Mask(f"m{index}", 1, hidden) if hidden else None
        counted.append(CountedSegment(replace(segment, mask=mask), 100 - hidden - lost))
    return tuple(counted)


@given(with_masks(), st.booleans(), st.sampled_from([0.0, 0.1, 0.3, 1.0]))
def test_what_masks_hide_is_bounded_and_stays_so(case, moves, ratio):
    """C39, C41: of each segment, of all together, and deciding again changes nothing."""
    limits = MaskLimits(ratio, from_bytes=5)
    decisions = decide(case, segment_bytes=LIMIT, moves=moves, masks=limits)
    left = [
        source for d in decisions for source in case if not isinstance(d, Drop) and source.segment in segments_of(d)
    ]
    stay = [c for d in decisions if isinstance(d, Keep | AddMask) for c in left if c.segment in segments_of(d)]
    assert all(c.dead_share <= ratio for c in stay)
    assert all(c.segment.size_bytes >= 5 for c in stay if c.has_losers)
    if moves or any(c.has_losers for c in case):
        assert (
            sum(c.dead_bytes for c in stay) <= sum(c.bytes_left + (c in stay) * c.dead_bytes for c in left) * ratio / 2
        )
    again = tuple(
        CountedSegment(
            replace(c.segment, records=c.survivors, mask=Mask("m", 1, c.dead) if c.dead else None), c.survivors
        )
        for c in stay
    )
    assert not changes(decide(again, segment_bytes=0, moves=False, masks=limits))


def after(decisions: tuple[Decision, ...], case: tuple[CountedSegment, ...]) -> tuple[CountedSegment, ...]:
    """The segments that a round with these decisions leaves, as the next one counts them, none of which is dead."""
    survivors = {c.segment: c.survivors for c in case}
    left = []
    for number, decision in enumerate(decisions):
        match decision:
            case Drop():
                continue
            case Rewrite(sources):
                first, count = sources[0].segment, decision.survivors
                new = a_segment(f"r{number}-{first.path}", first.base_offset, sources[-1].segment.end_offset)
                left.append(replace(new, records=count, size_bytes=decision.bytes_left))
            case Keep(segment):
                left.append(segment)
            case AddMask(source):
                mask = Mask(f"n-{source.segment.path}", 1, source.dead)
                left.append(replace(source.segment, records=survivors[source.segment], mask=mask))
    return tuple(CountedSegment(segment, segment.records) for segment in left)


@given(with_masks(), st.booleans(), st.sampled_from([0.1, 0.3, 1.0]), st.sampled_from([1, 30, 150]), st.booleans())
def test_rounds_that_rewrite_in_parts_end_with_what_one_round_leaves(case, moves, ratio, most, keyless):
    """C39, C42: no more bytes at once than are allowed, and what is hidden is bounded at the end."""
    limits = MaskLimits(ratio, from_bytes=5)
    if keyless and case:
        case = (CountedSegment(replace(case[0].segment, null_keys=1, mask=None, records=100), 50), *case[1:])
    survivors = sum(c.survivors for c in case)
    left, rounds, segments = case, 0, len(case)
    while not rounds or limits.exceeded_by([c.segment for c in left], together=True):
        decisions = decide(left, segment_bytes=LIMIT, moves=moves and not rounds, masks=limits, rewrite_bytes=most)
        work = [d for d in work_of(decisions) if isinstance(d, Rewrite)]
        can_wait = [d for d in work if len(d.sources) > 1 or limits.can_wait(d.sources[0])]
        sizes = [d.bytes_left for d in can_wait]
        assert len(sizes) <= 1 or sum(sizes) <= max(most, *sizes)
        assert work or not rounds, "a round that is made for what waits rewrites some of it"
        left, rounds = after(decisions, left), rounds + 1
        segments = len(left) if rounds == 1 else segments
        assert sum(c.survivors for c in left) == survivors
    if moves or any(c.has_losers for c in case):
        assert sum(c.dead_bytes for c in left) <= sum(c.segment.size_bytes for c in left) * ratio / 2 + len(left)
    assert rounds <= 1 + segments
    assert not changes(decide(left, segment_bytes=0, moves=False, masks=limits))
