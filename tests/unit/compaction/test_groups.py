"""What becomes of segments once their losers are counted: kept, rewritten, merged, dropped (C39, C41)."""

from __future__ import annotations

import pytest

from lithify.compaction.groups import MANY_SMALL, SegmentOutcome, group_segments
from support.builders import a_segment

LIMIT = 1000


def outcomes(*drawn):
    """Segments of ten records: a size in bytes, or (size, survivors)."""
    result = []
    for index, one in enumerate(drawn):
        size, survivors = one if isinstance(one, tuple) else (one, 10)
        segment = a_segment(f"s{index}", 10 * index, 10 * index + 10, size_bytes=size)
        result.append(SegmentOutcome(segment, survivors))
    return tuple(result)


def grouped(*drawn, moves=True):
    """Kept, rewritten or merged, and dropped segments by number."""
    grouping = group_segments(outcomes(*drawn), segment_bytes=LIMIT, moves=moves)
    number = {f"s{n}": n for n in range(len(drawn))}
    return (
        [number[s.path] for s in grouping.kept],
        [[number[source.segment.path] for source in group.sources] for group in grouping.groups],
        [number[s.path] for s in grouping.dropped],
    )


def test_a_segment_without_a_loser_is_kept():
    """C39."""
    assert grouped(900, 900) == ([0, 1], [], [])


def test_a_segment_with_a_loser_is_rewritten():
    """C39."""
    assert grouped(900, (900, 9), 900) == ([0, 2], [[1]], [])


def test_a_segment_where_nothing_survives_is_dropped():
    """C39: nothing is written in its place."""
    assert grouped(900, (900, 0)) == ([0], [], [1])


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ((500, 500), [[0, 1]]),  # together exactly segment.bytes
        ((501, 500), []),  # one byte above
        ((300, 300), [[0, 1]]),  # the largest not above the sum of the others
        ((301, 300), []),
        ((300, 150, 150), [[0, 1, 2]]),
        ((301, 150, 150), [[1, 2]]),  # the large one stays out, what is beside it merges
        ((150, 301, 150), []),
        ((100, 100, 600, 100, 100), [[0, 1], [3, 4]]),
    ],
)
def test_neighbours_merge_unless_one_outweighs_the_others(sizes, groups):
    """C39: so that a large segment is not rewritten for every small head."""
    assert grouped(*sizes)[1] == groups


def test_many_small_ones_merge_even_with_a_large_one():
    """C39: at least 8."""
    small = [10] * (MANY_SMALL - 1)
    assert grouped(900, *small[:-1])[1] == [list(range(1, MANY_SMALL - 1))]
    assert grouped(900, *small)[1] == [list(range(MANY_SMALL))]


def test_where_one_piece_ends_the_next_may_still_merge():
    """C39: 600 does not fit to anything, the two behind it do."""
    assert grouped(600, 300, 300, 600)[1] == [[1, 2]]


def test_a_dropped_segment_does_not_stand_between_its_neighbours():
    """C39."""
    assert grouped(300, (900, 0), 300) == ([], [[0, 2]], [1])


def test_sizes_after_the_round_count():
    """C39: what is left of segments decides, in proportion to their records."""
    assert grouped((900, 3), (900, 3))[1] == [[0, 1]]
    assert grouped((900, 6), (900, 6))[1] == [[0], [1]]


def test_a_round_that_neither_moves_nor_removes_merges_nothing():
    """C41: so that a second round finds nothing to do."""
    assert grouped(100, 100, moves=False) == ([0, 1], [], [])
    assert not group_segments(outcomes(100, 100), segment_bytes=LIMIT, moves=False).changes


def test_a_round_that_removes_something_merges_as_well():
    """C39."""
    assert grouped(100, (200, 5), moves=False) == ([], [[0, 1]], [])


def test_nothing_becomes_of_nothing():
    """C41."""
    assert grouped() == ([], [], [])


def test_what_goes_is_every_source_and_every_dropped_segment():
    """C6: the commit stops naming them, and no other."""
    grouping = group_segments(outcomes(900, (900, 5), 100, 100, (50, 0)), segment_bytes=LIMIT, moves=True)
    assert {s.path for s in grouping.removed} == {"s1", "s2", "s3", "s4"}
    assert grouping.changes


def test_a_group_knows_what_it_will_hold():
    """C42."""
    (group,) = group_segments(outcomes((200, 5), 100), segment_bytes=LIMIT, moves=True).groups
    assert (group.partition, group.survivors, group.bytes_left) == (0, 15, 200)
