"""Records that compete by order: which wins, what is undone, what is held (C10, C11, C20)."""

from __future__ import annotations

import pytest

from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass.key_comparison import KeyComparison
from lithify.columnar.keypass.key_source import MemoryExceededError
from lithify.columnar.keypass.ranks import (
    EXPIRED_BIT,
    ORDERED_KEYS,
    PAST_BIT,
    TOMBSTONE_BIT,
    UNORDERED_BIT,
)
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keypass.winners import WinnerFinder
from support.engines.kernel import goes_and_stays
from support.engines.keys_in_memory import KeysInMemory

LOWEST, HIGHEST = -(2**63), 2**63 - 1
EXPIRED = TOMBSTONE_BIT | EXPIRED_BIT


def compare(**portions) -> tuple[Tally, list[int], list[int]]:
    """The tally, the clean records that go and the dirty ones that stay, each numbered from 0."""
    source = KeysInMemory(**portions, schema=ORDERED_KEYS)
    tally, dead = WinnerFinder(2**26, "seed").find(
        lambda _: KeysInMemory(**portions, schema=ORDERED_KEYS), HashRange(0, 1)
    )
    return tally, *goes_and_stays(dead, source.starts)


@pytest.mark.parametrize(
    ("orders", "winner"),
    [
        ([3, 1, 2], 0),
        ([1, 3, 3, 2], 2),
        ([-1, LOWEST, None], 0),
        ([None, LOWEST, None], 1),
        ([None, None], 1),
        ([HIGHEST, 0, LOWEST], 0),
        ([0, HIGHEST, HIGHEST, -1], 2),
    ],
)
def test_the_highest_order_wins_and_of_equal_ones_the_last(orders, winner):
    tally, _, stays = compare(dirty=[(b"k", order) for order in orders])
    assert stays == [winner]
    assert (tally.compared, tally.winners) == (len(orders), 1)


def test_clean_records_are_judged_where_nothing_is_dirty():
    tally, goes, _ = compare(clean=[(b"k", 1), (b"l", 2, PAST_BIT), (b"m", None)], above_horizon=[(b"k", 0)])
    assert (goes, tally.clean_past, tally.asked) == ([1], 1, 1)


@pytest.mark.parametrize("order", [LOWEST, -7, 0, HIGHEST])
def test_the_rank_comes_back_whole_from_every_order(order):
    bits = TOMBSTONE_BIT | UNORDERED_BIT
    tally, _, stays = compare(dirty=[(b"other", 0), (b"k", order, bits)])
    assert stays == [0, 1]
    assert (tally.winning_tombstones, tally.winning_unordered) == (1, 1)


def test_a_clean_record_loses_to_an_equal_order_and_beats_a_lower_one():
    clean = [(b"equal", 5), (b"higher", 5), (b"lower", 5), (b"alone", 5)]
    tally, goes, stays = compare(clean=clean, dirty=[(b"equal", 5), (b"higher", 4), (b"lower", 6), (b"new", 0)])
    assert goes == [0, 2]
    assert stays == [0, 2, 3]
    assert (tally.compared, tally.winners, tally.clean_superseded) == (4, 3, 2)


def test_what_a_beaten_winner_had_counted_is_taken_back():
    """C18, C24: of the dirty part nothing won, so nothing of it expired, was held or was past retention."""
    clean = [(b"tombstone", 9), (b"expired", 9), (b"past", 9), (b"held", 9)]
    dirty = [
        (b"tombstone", None, TOMBSTONE_BIT | UNORDERED_BIT),
        (b"expired", 1, EXPIRED),
        (b"past", 1, PAST_BIT),
        (b"held", 1, EXPIRED),
    ]
    tally, goes, stays = compare(clean=clean, dirty=dirty, above_horizon=[(b"held", 0)])
    assert (goes, stays) == ([], [])
    assert (tally.winners, tally.winning_tombstones, tally.winning_unordered) == (0, 0, 0)
    assert (tally.expired_winners, tally.past_winners, tally.held_winners) == (0, 0, 0)


@pytest.mark.parametrize(
    ("tombstone", "above_horizon", "held"),
    [
        (5, [4], True),
        (5, [5], False),
        (5, [6, 7], False),
        (5, [6, 4, 9], True),
        (5, [None], True),
        (LOWEST, [None], True),
        (None, [None], False),
        (LOWEST, [LOWEST], False),
        (HIGHEST, [HIGHEST], False),
        (HIGHEST, [HIGHEST - 1], True),
        (5, [], False),
    ],
)
def test_an_expired_tombstone_stays_while_what_it_beats_waits(tombstone, above_horizon, held):
    """C20: strictly, since of equal orders the later wins."""
    portions = {"above_horizon": [(b"k", order) for order in above_horizon] + [(b"other", LOWEST)]}
    tally, _, stays = compare(dirty=[(b"k", tombstone, EXPIRED)], **portions)
    assert (stays == [0]) is held
    assert (tally.held_winners, tally.expired_winners) == (int(held), int(not held))
    assert tally.asked == len(above_horizon) + 1
    tally, goes, _ = compare(clean=[(b"k", tombstone, EXPIRED)], dirty=[(b"new", 0)], **portions)
    assert (goes == []) is held
    assert (tally.clean_held, tally.clean_expired) == (int(held), int(not held))


def test_nothing_else_is_held():
    """C24: a value past retention goes, whatever waits; a superseded tombstone does as well."""
    clean = [(b"past", 5, PAST_BIT), (b"superseded", 5, EXPIRED)]
    above_horizon = [(b"past", 0), (b"superseded", 0)]
    tally, goes, stays = compare(clean=clean, dirty=[(b"superseded", 6)], above_horizon=above_horizon)
    assert (goes, stays) == ([0, 1], [0])
    assert (tally.clean_past, tally.clean_held, tally.clean_superseded) == (1, 0, 1)


def test_a_try_that_ran_out_of_memory_leaves_nothing_behind(monkeypatch):
    """C38: both halves together find what the whole does, those that are undone as well."""
    keys = [b"%d" % i for i in range(50)]
    portions = {
        "clean": [(key, 5) for key in keys],
        "dirty": [(key, i % 10) for i, key in enumerate(keys)],
        "above_horizon": [(key, 0) for key in keys],
    }
    expected = compare(**portions)
    run = KeyComparison.run
    tries = []

    def fail_once(self):
        results = run(self)
        tries.append(self)
        if len(tries) == 1:
            raise MemoryExceededError
        return results

    monkeypatch.setattr(KeyComparison, "run", fail_once)
    tally, goes, stays = compare(**portions)
    assert len(tries) == 3
    assert (goes, stays) == expected[1:]
    assert (tally.winners, tally.clean_superseded, tally.asked) == (len(stays), len(goes), 50)
