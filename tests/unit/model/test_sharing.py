"""How members share partitions: fairly, with few moves, and all the same way (C58)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.model.groups.sharing import Turn, next_turn, shares

CASES = {
    "alone": (4, {}, "a", Turn((0, 1, 2, 3), 0, False)),
    "settled": (4, {0: "a", 1: "a", 2: "b", 3: "b"}, "a", Turn((), 0, True)),
    "one has joined": (4, {0: "a", 1: "a", 2: "a", 3: "a"}, "a b", Turn((), 2, False)),
    "of five, two and three": (5, {0: "a", 1: "a", 2: "a", 3: "b", 4: "b"}, "a b", Turn((), 0, True)),
    "a third gets one of four": (4, {0: "a", 1: "a", 2: "b", 3: "b"}, "b a c", Turn((), 1, False)),
    "one has died": (4, {0: "a", 1: "a"}, "a", Turn((2, 3), 0, False)),
    "more members than partitions": (1, {0: "b"}, "a b", Turn((), 0, True)),
    "no partition": (0, {}, "a", Turn((), 0, True)),
    "what is no member keeps what it has": (2, {0: "spark", 1: "spark"}, "a", Turn((), 0, True)),
    "partitions that went": (1, {0: "a", 1: "b"}, "a b", Turn((), 0, True)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_turn(case: str) -> None:
    partitions, holders, members, turn = CASES[case]
    me, *_ = members.split()
    assert next_turn(me, partitions, holders, {*members.split(), *{h for h in holders.values() if h in "ab"}}) == turn


def test_what_one_holds_that_may_have_died_is_not_settled() -> None:
    """Else one that reads to the ends of its own would end before it gets the others."""
    holders = {0: "a", 1: "b"}
    assert next_turn("a", 2, holders, {"a", "b"}, silent={"b"}) == Turn((), 0, False)
    assert next_turn("a", 2, holders, {"a", "b"}, silent={"c"}) == Turn((), 0, True)


@given(st.integers(0, 40), st.dictionaries(st.text("abcdef", min_size=1), st.integers(0, 40), min_size=1))
def test_shares_differ_by_one_at_most_and_are_all(partitions: int, held: dict[str, int]) -> None:
    due = shares(partitions, held)
    assert sum(due.values()) == partitions
    assert max(due.values()) - min(due.values()) <= 1
    assert max(due.values()) == -(-partitions // len(held))


@pytest.mark.long
@given(
    st.integers(0, 30),
    st.lists(st.sets(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_members_that_come_and_go_end_with_fair_shares(partitions: int, fleets: list[set[str]], random: object) -> None:
    """In any order of turns, each on what the last one left; the database lets one take a partition."""
    holders: dict[int, str] = {}
    for fleet in fleets:
        holders = {p: member for p, member in holders.items() if member in fleet}
        for _ in range(2 * len(fleet) + 2):
            for member in random.sample(sorted(fleet), len(fleet)):  # type: ignore[attr-defined]
                turn = next_turn(member, partitions, holders, fleet)
                assert not (turn.take and turn.give_up)
                holders |= dict.fromkeys(turn.take, member)
                for partition in sorted(p for p, h in holders.items() if h == member)[: turn.give_up]:
                    del holders[partition]
        held = [sum(h == member for h in holders.values()) for member in fleet]
        assert sum(held) == partitions and max(held) - min(held) <= 1
        assert all(next_turn(member, partitions, holders, fleet) == Turn() for member in fleet)
        before = dict(holders)
        joined = fleet | {"z"}
        for member in sorted(joined):
            turn = next_turn(member, partitions, before, joined)
            share = partitions // len(joined) + 1
            assert turn.give_up <= share, "no more moves than the newcomer needs"
