"""Positions translated with the kept map of offsets, against all pairs of a log that was published."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.kafka.publisher.offset_map import LARGEST_CHARS, OffsetMap

SIZES = st.sampled_from((1, 1, 1, 2, 3, 9))
STEPS = st.lists(
    st.tuples(
        st.lists(
            st.tuples(SIZES, SIZES), max_size=30
        ),  # runs of a transaction: a hole of n - 1 offsets, then m records
        st.integers(0, 5),  # a hole behind the last one, which the cursor goes past
        st.sampled_from(("commit", "commit", "commit", "abort", "old version")),
    ),
    max_size=12,
)


@dataclass(slots=True)
class Published:
    """A partition that is published, as the lake and the target have it."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    known: OffsetMap = OffsetMap()
    next: int = 0
    """Everything below is published."""
    target: int = 0
    """The offset that the next record gets."""
    forgotten: int = 0
    """What is below was published by a version without maps, or is a hole behind that: no map is stored then."""

    def transaction(self, runs, hole: int, ends: str, marks=(), largest: int = LARGEST_CHARS) -> None:
        offset, pairs = self.next, []
        for gap, records in runs:
            offset += gap - 1
            pairs += [(offset + n, self.target + len(pairs) + n) for n in range(records)]
            offset += records
        self.target += len(pairs) + (1 if pairs else 0)  # the marker
        if ends == "abort":
            return
        self.next = offset + hole
        self.pairs += pairs
        self.known = self.known.with_records(pairs).bounded(marks, largest)
        stored = self.known.to_json()
        if ends == "old version":
            stored = []
        if not stored:
            self.forgotten = self.next
        self.known = OffsetMap.from_json(stored, self.next, self.known.end)  # as each run begins

    def right(self, position: int) -> int:
        """The first record at or above a position, or the log end behind the last one."""
        at = bisect_left(self.pairs, (position, 0))
        return self.pairs[at][1] if at < len(self.pairs) else self.known.end


def check(published: Published, position: int) -> bool:
    """Never later than right, and no farther from it than it says; returns whether it is exact."""
    found, right = published.known.translate(position), published.right(position)
    assert 0 <= found.offset <= right <= found.offset + found.again
    return found.again == 0


@given(STEPS, st.sampled_from((12, 40, 150, LARGEST_CHARS)), st.sets(st.integers(0, 500), max_size=4))
def test_a_translated_position_is_never_later_than_the_right_one(steps, largest, marks):
    """At every offset: in records, in holes, at the start, at the end and beyond it, after aborts and restarts."""
    published = Published()
    for runs, hole, ends in steps:
        published.transaction(runs, hole, ends, sorted(marks), largest)
        assert len(",".join(map(str, published.known.to_json()))) <= max(largest, 80)
        exact = [check(published, position) for position in range(published.next + 20)]
        assert all(exact[published.next :])
        if largest == LARGEST_CHARS:
            assert all(exact[published.forgotten :])


@given(STEPS)
def test_the_next_record_is_where_the_end_was_translated_to(steps):
    """A group that has read everything goes on at what is published next, and skips none of it."""
    published, waiting = Published(), []
    for runs, hole, ends in steps:
        at_end = published.next, published.known.translate(published.next + 3).offset
        published.transaction(runs, hole, ends)
        waiting.append(at_end)
    for position, offset in waiting:
        assert all(target >= offset for lake, target in published.pairs if lake >= position)


@settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_what_is_read_again_is_no_more_than_what_was_left_to_read(seed):
    """In a log with many holes, where most runs go: near the end positions are nearly exact. Marks stay exact."""
    luck, published = Random(seed), Published()
    marks = sorted(luck.randrange(400_000) for _ in range(30))
    for _ in range(20):
        runs = [(luck.choice((1, 2, 2, 5)), luck.choice((1, 1, 2))) for _ in range(5_000)]
        published.transaction(runs, 0, "commit", marks)
    assert len(",".join(map(str, published.known.to_json()))) <= LARGEST_CHARS
    assert len(published.known.runs) > 50
    assert all(check(published, mark) for mark in marks if mark < published.next)
    for lag in (2 ** luck.uniform(0, 17) for _ in range(300)):
        position = published.pairs[-1 - int(lag)][0]
        assert check(published, position) or (
            published.right(position) - published.known.translate(position).offset < lag
        )


def test_a_log_without_holes_is_exact_everywhere_in_a_single_run():
    published = Published()
    published.transaction([(1, 40_000)], 0, "commit")
    assert len(published.known.runs) == 1
    assert [published.known.translate(n).offset for n in (0, 17, 39_999, 40_000, 50_000)] == [
        0,
        17,
        39_999,
        40_000,
        40_000,
    ]


def test_a_gap_in_the_target_ends_a_run_too():
    known = OffsetMap().with_records([(0, 0), (1, 2), (2, 3)])
    assert [known.translate(n).offset for n in range(4)] == [0, 2, 3, 4]
