"""Ranges of keys that a set of segments can hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithify.rules.compaction.key_bounds import KeyBounds, key_bounds_of
from support.builders import a_segment


def a_range(low, high):
    return a_segment(min_key=low, max_key=high)


def test_ranges_that_touch_become_one():
    found = key_bounds_of([a_range(b"p", b"s"), a_range(b"a", b"f"), a_range(b"f", b"k"), a_range(b"b", b"c")])
    assert found == KeyBounds((b"a", b"p"), (b"k", b"s"))


def test_a_range_without_an_upper_end_swallows_what_it_reaches():
    found = key_bounds_of([a_range(b"a", b"c"), a_range(b"m", None), a_range(b"k", b"n"), a_range(b"x", b"y")])
    assert found == KeyBounds((b"a", b"k"), (b"c", None))


def test_segments_without_keys_have_no_range():
    assert key_bounds_of([a_range(None, None)]) == KeyBounds((), ())
    assert not key_bounds_of([a_range(b"a", None)]).may_meet(a_range(None, None))


KEYS = st.binary(max_size=2)
RANGES = st.lists(
    st.one_of(
        st.tuples(KEYS, KEYS).map(sorted),
        st.tuples(KEYS, st.none()),
        st.just((None, None)),
    ),
    max_size=6,
)


@given(RANGES, RANGES)
def test_a_segment_meets_the_ranges_exactly_where_it_meets_one_of_the_segments(dirty, clean):
    """C38: the merged ranges say what asking every pair would say, so nothing is passed over wrongly."""
    ranges = key_bounds_of([a_range(*pair) for pair in dirty])
    for low, high in clean:
        meets = any(
            low is not None
            and other_low is not None
            and (other_high is None or low <= other_high)
            and (high is None or other_low <= high)
            for other_low, other_high in dirty
        )
        assert ranges.may_meet(a_range(low, high)) == meets
