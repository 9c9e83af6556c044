"""Tombstone steps: since when tombstones are covered, and which may go (C18, C19)."""

from __future__ import annotations

import pytest

from lithify.model.groups.reads import EVERYTHING
from lithify.model.topic.log import TombstoneStep
from lithify.rules.compaction.tombstones import (
    STEPS_KEPT,
    Expiry,
    folded,
    next_expiry_ms,
    tombstones_expire_below,
    with_round,
)
from lithify.testing.oracle_engine import step_of
from support.tables import cases_of

STEPS = (TombstoneStep(40, 1000, 2), TombstoneStep(90, 2000, 1), TombstoneStep(120, 3000, 4))


EXPIRE = {
    "now >= T + delete.retention.ms, to the millisecond": [
        (1099, {}, 0),
        (1100, {}, 40),
        (2099, {}, 40),
        (2100, {}, 90),
        (99_999, {}, 120),
    ],
    "a clock that goes back expires nothing early": [(500, {}, 0)],
    "the setting in force counts": [(2100, {"retention_ms": 1100}, 40), (2100, {"retention_ms": 1101}, 0)],
    "what the round itself covers first has no age": [
        (99_999, {"horizon": 200}, 120),
        (99_999, {"horizon": 200, "steps": ()}, 0),
    ],
    "with a retention of 0 all go at once, whatever the clock says": [
        (0, {"retention_ms": 0, "horizon": 200}, 200),
        (0, {"retention_ms": 0, "horizon": 200, "steps": ()}, 200),
        (0, {"retention_ms": 0}, 120),
    ],
}


@pytest.mark.parametrize(
    ("now_ms", "given", "below"),
    cases_of(EXPIRE),
)
def test_below_which_offset_tombstones_go(now_ms, given, below):
    """C18."""
    given = {"steps": STEPS, "horizon": 120, "retention_ms": 100} | given
    expiry = Expiry(given.pop("retention_ms"), given.pop("held_ms", None), given.pop("read_below", EVERYTHING))
    assert tombstones_expire_below(now_ms=now_ms, expiry=expiry, **given) == below


HOLD = {
    "groups that hold for no time hold nothing of a round that would drop it otherwise": [
        (0, {"read_below": 0, "retention_ms": 0, "held_ms": 0, "horizon": 200, "steps": ()}, 200),
        (0, {"read_below": 0, "retention_ms": 0, "held_ms": 0}, 120),
    ],
    "groups that have read nothing hold everything": [(99_999, {"read_below": 0}, 0)],
    "a step goes once all groups have read up to its end": [
        (99_999, {"read_below": 89}, 40),
        (99_999, {"read_below": 90}, 90),
        (2099, {"read_below": 90}, 40),
    ],
    "held or not, it goes after the longest time": [
        (1999, {"read_below": 0, "held_ms": 1000}, 0),
        (2000, {"read_below": 0, "held_ms": 1000}, 40),
        (3999, {"read_below": 40, "held_ms": 1000}, 90),
    ],
    "with a retention of 0 what all have read goes at once, whatever the clock says": [
        (0, {"retention_ms": 0, "horizon": 200, "read_below": 200}, 200),
        (0, {"retention_ms": 0, "horizon": 200, "read_below": 199}, 120),
        (0, {"retention_ms": 0, "read_below": 95}, 90),
        (99_999, {"retention_ms": 0, "horizon": 200, "read_below": 0, "held_ms": 1000}, 120),
    ],
}


@pytest.mark.parametrize(("now_ms", "given", "below"), cases_of(HOLD))
def test_below_which_offset_tombstones_go_that_groups_hold(now_ms, given, below):
    """C61."""
    test_below_which_offset_tombstones_go(now_ms, given, below)


def test_the_age_of_an_offset_is_that_of_the_first_step_above_it():
    """C18, C19: T(o) is the time of the first round whose end was above o."""
    assert [step_of(STEPS, offset) for offset in (0, 39, 40, 89, 90, 119)] == [0, 0, 1, 1, 2, 2]
    assert step_of(STEPS, 120) is None
    assert step_of((), 0) is None


@pytest.mark.parametrize(("now_ms", "time_ms"), [(4000, 4000), (2500, 3000)])
def test_a_round_adds_its_step_never_earlier_than_the_one_before(now_ms, time_ms):
    """C19, C18: a clock that went back, or `--now`, gives the time of the step before."""
    assert with_round(STEPS, horizon=150, now_ms=now_ms, tombstones=7) == (*STEPS, TombstoneStep(150, time_ms, 7))
    assert with_round((), horizon=10, now_ms=5, tombstones=0) == (TombstoneStep(10, 5, 0),)


def fold(steps, *, log_start=0, retention_ms=100, now_ms=0):
    return folded(steps, log_start=log_start, held_ms=retention_ms, now_ms=now_ms)


BARE = (TombstoneStep(40, 1000, 0), TombstoneStep(90, 2000, 1), TombstoneStep(120, 3000, 0))
FOLDED = {
    "nothing that still says something": (STEPS, {"now_ms": 1099}, STEPS),
    "expired ones become the newest of them": (STEPS, {"now_ms": 2100}, (TombstoneStep(90, 2000, 3), STEPS[2])),
    "and all, where all have": (STEPS, {"now_ms": 99_999}, (TombstoneStep(120, 3000, 7),)),
    "one above the log start stays": (STEPS, {"log_start": 39}, STEPS),
    "one that ends at it covers nothing": (STEPS, {"log_start": 40}, STEPS[1:]),
    "nor does one below": (STEPS, {"log_start": 500}, ()),
    "one without a tombstone goes, but not the last, which says what is covered": (BARE, {}, BARE[1:]),
}


@pytest.mark.parametrize(("steps", "given", "left"), FOLDED.values(), ids=FOLDED)
def test_which_steps_are_folded(steps, given, left):
    """C19: tombstones may only become younger by it, and are all still counted."""
    assert fold(steps, **given) == left


def test_too_many_steps_become_fewer_by_merging_those_of_one_stretch_of_time():
    """C19: of those that become one the latest time counts, so no tombstone gets older by it."""
    many = tuple(TombstoneStep(10 * n, 1000 * n, 1) for n in range(1, STEPS_KEPT + 1))
    one_more = (*many, TombstoneStep(9999, many[-1].time_ms + 1, 5))
    result = fold(one_more)
    assert len(result) == STEPS_KEPT
    assert result == (*many[:-1], TombstoneStep(9999, many[-1].time_ms + 1, 6))


def test_the_next_expiry_is_that_of_the_oldest_step_with_tombstones():
    """C21: a log with none has no such time."""
    assert next_expiry_ms(STEPS, Expiry(100)) == 1100
    assert next_expiry_ms((TombstoneStep(40, 1000, 0), TombstoneStep(90, 2000, 1)), Expiry(100)) == 2100
    assert next_expiry_ms((TombstoneStep(40, 1000, 0),), Expiry(100)) is None
    assert next_expiry_ms((), Expiry(100)) is None
