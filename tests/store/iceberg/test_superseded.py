"""Since when a metadata file is unnamed, from what sweeps have seen (C6)."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lithify.store.iceberg.commit.referenced import LOOKS_PER_RETENTION, Looks

RETENTION_MS = 80
STEPS = st.lists(st.integers(1, 100), min_size=1, max_size=30)


@given(STEPS, st.integers(0, 2_000), st.integers(0, 2_000))
def test_it_is_never_said_to_be_unnamed_for_longer_than_it_is(steps: list[int], from_ms: int, length_ms: int) -> None:
    """A file that was named in [from, to): told is no time before `to`, and at most two looks after it."""
    to_ms, now_ms, looks, took = from_ms + length_ms, 0, Looks(), []
    for step in steps:
        now_ms += step
        named = {"f"} if from_ms <= now_ms < to_ms else set()
        more = looks.and_now(named, {"f"}, RETENTION_MS, now_ms)
        looks, took = (more, [*took, now_ms]) if more is not None else (looks, took)
        closing = looks.closing("f", from_ms, now_ms)
        if closing.was_named:
            assert any(from_ms <= ms < to_ms for ms in took)
            assert closing.at_ms >= to_ms or from_ms <= now_ms < to_ms
        assert closing.at_ms <= now_ms
        gaps = [later - earlier for earlier, later in pairwise(took)]
        assert all(gap >= RETENTION_MS // LOOKS_PER_RETENTION for gap in gaps)


def test_looks_are_few_however_many_sweeps_there_are() -> None:
    looks = Looks()
    for now_ms in range(0, 100 * RETENTION_MS):
        looks = looks.and_now({f"{now_ms}"}, {f"{now_ms}"}, RETENTION_MS, now_ms) or looks
    assert len(looks.times_ms) <= LOOKS_PER_RETENTION + 2
    assert len(looks.named_ms) == 1
    assert Looks.from_json(looks.to_json()) == looks


def test_a_clock_that_went_back_is_forgotten() -> None:
    looks = Looks().and_now({"f"}, {"f"}, RETENTION_MS, 10_000)
    assert looks is not None
    again = looks.and_now(set(), {"f"}, RETENTION_MS, 500)
    assert again is not None and again.times_ms == (500,)
    assert again.closing("f", 0, 600).at_ms == 500
