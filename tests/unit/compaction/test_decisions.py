"""What becomes of segments once their losers are counted: kept, rewritten, merged, dropped (C39, C41)."""

from __future__ import annotations

import pytest

from lithify.model.segment import Mask
from lithify.rules.compaction.decisions import (
    MANY_SMALL,
    AddMask,
    CountedSegment,
    Drop,
    Keep,
    MaskLimits,
    Rewrite,
    decide,
    work_of,
)
from support.builders import a_segment

LIMIT = 1000


def counted(*drawn):
    """Segments of ten records: a size in bytes, or (size, survivors)."""
    result = []
    for index, one in enumerate(drawn):
        size, survivors = one if isinstance(one, tuple) else (one, 10)
        segment = a_segment(f"s{index}", 10 * index, 10 * index + 10, size_bytes=size)
        result.append(CountedSegment(segment, survivors))
    return tuple(result)


def decided(*drawn, moves=True):
    """Kept, rewritten or merged, and dropped segments by number."""
    decisions = decide(counted(*drawn), segment_bytes=LIMIT, moves=moves)
    number = {f"s{n}": n for n in range(len(drawn))}
    return (
        [number[d.segment.path] for d in decisions if isinstance(d, Keep)],
        [[number[s.path] for s in d.segments] for d in work_of(decisions)],
        [number[d.segment.path] for d in decisions if isinstance(d, Drop)],
    )


SMALL = [10] * (MANY_SMALL - 1)
CASES = {
    "without a loser: kept": ([900, 900], ([0, 1], [], [])),
    "with a loser: rewritten": ([900, (900, 9), 900], ([0, 2], [[1]], [])),
    "where nothing survives: dropped, and nothing written for it": ([900, (900, 0)], ([0], [], [1])),
    "eight or more merge even with a large one": ([900, *SMALL], ([], [[*range(MANY_SMALL)]], [])),
    "fewer do so without it": ([900, *SMALL[:-1]], ([0], [[*range(1, MANY_SMALL - 1)]], [])),
    "where one piece ends the next may still merge": ([600, 300, 300, 600], ([0, 3], [[1, 2]], [])),
    "a dropped segment does not stand between its neighbours": ([300, (900, 0), 300], ([], [[0, 2]], [1])),
    "sizes after the round count, in proportion to records": ([(900, 3), (900, 3)], ([], [[0, 1]], [])),
    "and are too large here": ([(900, 6), (900, 6)], ([], [[0], [1]], [])),
    "there is nothing": ([], ([], [], [])),
}


@pytest.mark.parametrize(("drawn", "expected"), CASES.values(), ids=CASES)
def test_what_becomes_of_segments(drawn, expected):
    """C39."""
    assert decided(*drawn) == expected


@pytest.mark.parametrize(("second", "expected"), [(100, ([0, 1], [], [])), ((200, 5), ([], [[0, 1]], []))])
def test_a_round_that_moves_nothing_merges_only_if_it_removes_something(second, expected):
    """C39, C41: so that a second round finds nothing to do."""
    assert decided(100, second, moves=False) == expected


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
    assert decided(*sizes)[1] == groups


def masked(*drawn, ratio=0.4, moves=True, **limits):
    """Numbers of the segments that get masks, and of those that are rewritten; drawn as (size, survivors, of)."""
    counted = tuple(
        CountedSegment(a_segment(f"s{n}", 10 * n, 10 * n + 10, size_bytes=size, records=records, **more), survivors)
        for n, (size, survivors, records, more) in enumerate((*one, {})[:4] for one in drawn)
    )
    decisions = decide(counted, segment_bytes=LIMIT, moves=moves, masks=MaskLimits(ratio, **limits))
    numbers = {
        kind: [int(s.path[1:]) for d in decisions if isinstance(d, kind) for s in d.segments]
        for kind in (AddMask, Rewrite)
    }
    return numbers[AddMask], numbers[Rewrite]


MASK = {"mask": Mask("m", 10, 3)}
MASK_CASES = {
    "few dead are masked": ([(900, 8, 10)], ([0], [])),
    "more than the ratio are rewritten": ([(900, 5, 10)], ([], [0])),
    "what a mask hides already counts": ([(900, 6, 7, MASK), (900, 5, 7, MASK), (900, 10, 10)], ([0], [1])),
    "a segment with a mask and no loser stays": ([(900, 7, 7, MASK), (900, 10, 10)], ([], [])),
    "one with keyless records is rewritten": ([(900, 9, 10, {"null_keys": 1})], ([], [0])),
    "small neighbours merge, masked or not": ([(300, 7, 7, MASK), (300, 10, 10), (300, 9, 10)], ([], [0, 1, 2])),
    "all dead together may be half the ratio: the most dead go first": (
        [(900, 7, 10), (900, 8, 10), (900, 6, 7, MASK)],
        ([0, 1], [2]),
    ),
    "also if they have no loser": ([(900, 7, 10), (900, 65, 65, {"mask": Mask("m", 10, 35)})], ([0], [1])),
}


@pytest.mark.parametrize(("drawn", "expected"), MASK_CASES.values(), ids=MASK_CASES)
def test_which_segments_get_masks(drawn, expected):
    """C39: what masks hide is bounded, for each segment and for all together."""
    assert masked(*drawn) == expected


def test_limits_of_masks():
    """C26: what lies below the log start is taken out of storage."""
    assert masked((900, 8, 10), from_bytes=901) == ([], [0])
    assert masked((900, 8, 10), from_bytes=900) == ([0], [])
    assert masked((900, 8, 10), log_start=1) == ([], [0])
    assert masked((900, 7, 7, MASK), log_start=1, moves=False) == ([], [0])  # only what it hides lies below
    assert masked((900, 8, 10), ratio=0.0) == ([], [0])
    assert masked((900, 7, 7, MASK), ratio=0.2, moves=False) == ([], [0])
    assert masked((900, 7, 7, MASK), (900, 7, 7, MASK), moves=False) == ([], [])  # C41


def test_decisions_are_in_the_order_of_their_first_segments():
    """C39: what is written for them is in offset order."""
    decisions = decide(counted(900, 300, (50, 0), 300, (50, 0)), segment_bytes=LIMIT, moves=True)
    assert [type(decision) for decision in decisions] == [Keep, Rewrite, Drop, Drop]


def test_a_rewrite_knows_what_it_will_hold():
    """C42."""
    (rewrite,) = decide(counted((200, 5), 100), segment_bytes=LIMIT, moves=True)
    assert isinstance(rewrite, Rewrite)
    assert (rewrite.partition, rewrite.survivors, rewrite.bytes_left) == (0, 15, 200)
