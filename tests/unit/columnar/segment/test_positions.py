"""Dead positions of a segment: the same whichever side is listed."""

from __future__ import annotations

import numpy as np
import pytest

from lithify.columnar.segment.dead_records import DeadPositions, DeadRecords


def positions(dead: DeadPositions, start: int, end: int) -> list[int]:
    return [start + int(at) for at in np.flatnonzero(dead.flags(start, end))]


@pytest.mark.parametrize(
    "dead", [DeadPositions.of([1, 4, 5]), DeadPositions.all_but([0, 2, 3, 6, 7])], ids=["of", "but"]
)
def test_both_sides_say_the_same(dead):
    again = DeadPositions.of_bytes(dead.to_bytes())
    assert positions(dead, 0, 8) == positions(again, 0, 8) == [1, 4, 5]
    assert positions(dead, 4, 7) == [4, 5]
    assert positions(dead, 2, 4) == []


def test_nothing_said_is_nothing_dead():
    assert positions(DeadPositions(), 0, 3) == []


def test_parts_of_the_keys_add_up():
    """Of a clean segment the dead, of a dirty one those that survive: each part knows its own only."""
    found, more = DeadRecords(np.array([10, 15, 20])), DeadRecords(np.array([10, 15, 20]))
    found.add(np.array([12, 10]))
    found.spare(np.array([19]))
    more.add(np.array([14]))
    more.spare(np.array([16, 15]))
    found.update(more)
    clean, dirty = found.by_segment().values()
    assert (positions(clean, 0, 5), clean.change) == ([0, 2, 4], 3)
    assert (positions(dirty, 0, 5), dirty.change) == ([2, 3], -3)


@pytest.mark.parametrize("gap", [1, 1000], ids=["dense", "sparse"])
def test_numbers_may_come_in_any_order(gap):
    found = DeadRecords(np.array([10, 100_000, 200_000]))
    numbers = 10 + gap * np.arange(150)
    for some in np.random.default_rng(1).permutation(numbers).reshape(-1, 10):
        found.spare(some)
    listed = numbers[numbers < 100_000]
    first = found.by_segment()[0]
    assert first.change == -len(listed)
    assert set(range(10, 100_000)) - {at + 10 for at in positions(first, 0, 99_990)} == set(listed.tolist())


def test_parts_that_list_different_sides_are_no_parts_of_one_segment():
    with pytest.raises(ValueError, match="do not list the same"):
        DeadPositions.of([1]).with_part(DeadPositions.all_but([1]))


def test_a_segment_of_which_nothing_was_found_is_left_out():
    found = DeadRecords(np.array([0, 5, 5, 9]))
    found.add(np.array([7]))
    assert list(found.by_segment()) == [2]
