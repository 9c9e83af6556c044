"""The laws of grouping, for any segments and any losers (C39, C41)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithify.compaction.groups import MANY_SMALL, Grouping, SegmentOutcome, group_segments
from support.builders import a_segment

LIMIT = 100


@st.composite
def segment_outcomes(draw: st.DrawFn) -> tuple[SegmentOutcome, ...]:
    """Segments of one log, most of them small, some with losers, some with nothing left."""
    sizes = draw(st.lists(st.sampled_from([1, 1, 2, 3, 5, 10, 20, 40, 60, 100, 130]), max_size=25))
    outcomes = []
    for index, size in enumerate(sizes):
        survivors = draw(st.sampled_from([10, 10, 10, 10, 7, 1, 0]))
        outcomes.append(SegmentOutcome(a_segment(f"s{index}", 10 * index, 10 * index + 10, size_bytes=size), survivors))
    return tuple(outcomes)


CASES = st.tuples(segment_outcomes(), st.booleans())


def grouping_of(case: tuple[tuple[SegmentOutcome, ...], bool]) -> Grouping:
    outcomes, moves = case
    return group_segments(outcomes, segment_bytes=LIMIT, moves=moves)


def pieces(grouping: Grouping) -> list[list[int]]:
    """What is left, in order: the sizes that each new or kept segment is made of."""
    left = [(group.sources[0].segment.base_offset, [s.bytes_left for s in group.sources]) for group in grouping.groups]
    left += [(segment.base_offset, [segment.size_bytes]) for segment in grouping.kept]
    return [sizes for _, sizes in sorted(left)]


def merges(sizes: list[int]) -> bool:
    """C39, literally."""
    few = len(sizes) < MANY_SMALL
    return len(sizes) > 1 and sum(sizes) <= LIMIT and (max(sizes) <= sum(sizes) - max(sizes) or not few)


@given(CASES)
def test_every_segment_becomes_one_thing(case):
    """C6: kept, source of one group, or dropped."""
    grouping = grouping_of(case)
    sources = [source.segment for group in grouping.groups for source in group.sources]
    assert sorted((*grouping.kept, *sources, *grouping.dropped), key=lambda s: s.base_offset) == [
        outcome.segment for outcome in case[0]
    ]


@given(CASES)
def test_what_has_no_loser_stays_and_what_is_empty_goes(case):
    """C39: a segment without a loser is only touched to be merged."""
    outcomes, _ = case
    grouping = grouping_of(case)
    assert set(grouping.dropped) == {o.segment for o in outcomes if o.survivors == 0}
    assert all(o.segment not in grouping.kept for o in outcomes if o.has_losers)
    assert all(group.sources[0].has_losers for group in grouping.groups if len(group.sources) == 1)


@given(CASES)
def test_only_neighbours_merge_and_only_as_the_rule_says(case):
    """C39: order is kept, so the offsets of two segments never interleave."""
    outcomes, _ = case
    grouping = grouping_of(case)
    left = [outcome.segment for outcome in outcomes if outcome.survivors]
    for group in grouping.groups:
        places = [left.index(source.segment) for source in group.sources]
        assert places == list(range(places[0], places[0] + len(places)))
        if len(places) > 1:
            assert merges([source.bytes_left for source in group.sources])


@given(CASES)
def test_no_neighbours_are_left_that_could_merge(case):
    """C39: in a round that moves D or removes something."""
    grouping = grouping_of(case)
    if not case[1] and not grouping.changes:
        return
    sizes = [sum(piece) for piece in pieces(grouping)]
    for start in range(len(sizes)):
        for end in range(start + 2, len(sizes) + 1):
            assert not merges(sizes[start:end]), (sizes, start, end)


@given(CASES)
def test_grouping_again_changes_nothing(case):
    """C41: what a round leaves is left alone by the next one, even if that one moves D."""
    sizes = [sum(piece) for piece in pieces(grouping_of(case))]
    again = tuple(
        SegmentOutcome(a_segment(f"t{index}", 10 * index, 10 * index + 10, size_bytes=size), 10)
        for index, size in enumerate(sizes)
    )
    assert not group_segments(again, segment_bytes=LIMIT, moves=False).changes
    if case[1] or grouping_of(case).changes:
        assert not group_segments(again, segment_bytes=LIMIT, moves=True).changes


@given(CASES)
def test_a_large_segment_is_not_rewritten_for_a_small_head(case):
    """C39: what is rewritten only to be merged is at most about what it is merged with."""
    for group in grouping_of(case).groups:
        sizes = [source.bytes_left for source in group.sources]
        if 1 < len(sizes) < MANY_SMALL:
            assert 2 * max(sizes) <= sum(sizes)


@given(st.lists(st.integers(1, 8), min_size=1, max_size=200))
def test_the_work_of_merging_a_growing_log_stays_bounded(heads):
    """C39: every byte is rewritten a few times in its life, not once for every head that follows."""
    log: list[int] = []
    written = 0
    for head in heads:
        log.append(head)
        outcomes = tuple(
            SegmentOutcome(a_segment(f"s{i}", 10 * i, 10 * i + 10, size_bytes=size), 10) for i, size in enumerate(log)
        )
        grouping = group_segments(outcomes, segment_bytes=1000, moves=True)
        written += sum(group.bytes_left for group in grouping.groups)
        log = [sum(piece) for piece in pieces(grouping)]
    assert written <= 11 * sum(heads)  # log2(1000), and one
