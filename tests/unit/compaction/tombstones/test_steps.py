"""Tombstone steps: since when tombstones are covered, and which may go (C18, C19)."""

from __future__ import annotations

from lithify.compaction.tombstones.steps import (
    STEPS_KEPT,
    folded,
    next_expiry_ms,
    step_of,
    tombstones_expire_below,
    with_round,
)
from lithify.model.log import TombstoneStep

STEPS = (TombstoneStep(40, 1000, 2), TombstoneStep(90, 2000, 1), TombstoneStep(120, 3000, 4))


def expire_below(now_ms, *, retention_ms=100, horizon=120, steps=STEPS):
    return tombstones_expire_below(steps, horizon=horizon, retention_ms=retention_ms, now_ms=now_ms)


def test_a_tombstone_goes_when_its_time_and_the_retention_have_passed():
    """C18: now >= T + delete.retention.ms, to the millisecond."""
    assert expire_below(1099) == 0
    assert expire_below(1100) == 40
    assert expire_below(2099) == 40
    assert expire_below(2100) == 90
    assert expire_below(99_999) == 120


def test_the_setting_in_force_counts():
    """C18: a longer retention keeps what a shorter one would let go."""
    assert expire_below(2100, retention_ms=1100) == 40
    assert expire_below(2100, retention_ms=1101) == 0


def test_what_a_round_newly_covers_starts_to_age_in_it():
    """C18: a round does not drop what it is the first to cover, however late its clock."""
    assert expire_below(99_999, horizon=200) == 120
    assert expire_below(99_999, horizon=200, steps=()) == 0


def test_with_a_retention_of_zero_tombstones_go_in_the_very_round_that_covers_them():
    """C18: and so do those that an earlier setting protected, whatever the clock says."""
    assert expire_below(0, retention_ms=0, horizon=200) == 200
    assert expire_below(0, retention_ms=0, horizon=200, steps=()) == 200
    assert expire_below(0, retention_ms=0, horizon=120) == 120


def test_a_clock_that_goes_back_expires_nothing_early():
    """C18."""
    assert expire_below(500) == 0


def test_the_age_of_an_offset_is_that_of_the_first_step_above_it():
    """C18, C19: T(o) is the time of the first round whose end was above o."""
    assert [step_of(STEPS, offset) for offset in (0, 39, 40, 89, 90, 119)] == [0, 0, 1, 1, 2, 2]
    assert step_of(STEPS, 120) is None
    assert step_of((), 0) is None


def test_a_round_adds_its_step():
    """C19."""
    assert with_round(STEPS, horizon=150, now_ms=4000, tombstones=7)[-1] == TombstoneStep(150, 4000, 7)
    assert with_round((), horizon=10, now_ms=5, tombstones=0) == (TombstoneStep(10, 5, 0),)


def test_a_step_is_never_earlier_than_the_one_before_it():
    """C18: a clock that went back, or `--now`, gives the time of the step before."""
    assert with_round(STEPS, horizon=150, now_ms=2500, tombstones=7)[-1] == TombstoneStep(150, 3000, 7)


def fold(steps, *, log_start=0, retention_ms=100, now_ms=0):
    return folded(steps, log_start=log_start, retention_ms=retention_ms, now_ms=now_ms)


def test_nothing_is_folded_that_still_says_something():
    """C19."""
    assert fold(STEPS, now_ms=1099) == STEPS


def test_expired_steps_become_the_newest_of_them():
    """C19: their tombstones may only become younger by it, and are all still counted."""
    assert fold(STEPS, now_ms=2100) == (TombstoneStep(90, 2000, 3), STEPS[2])
    assert fold(STEPS, now_ms=99_999) == (TombstoneStep(120, 3000, 7),)


def test_steps_below_the_log_start_are_dropped():
    """C19: with an end at or below S a step covers nothing any more."""
    assert fold(STEPS, log_start=39) == STEPS
    assert fold(STEPS, log_start=40) == STEPS[1:]
    assert fold(STEPS, log_start=500) == ()


def test_steps_without_a_tombstone_left_are_dropped_except_the_last():
    """C19: the last one says up to where tombstones are covered, and since when at the latest."""
    bare = (TombstoneStep(40, 1000, 0), TombstoneStep(90, 2000, 1), TombstoneStep(120, 3000, 0))
    assert fold(bare) == bare[1:]


def test_too_many_steps_become_fewer_by_merging_the_closest_in_time():
    """C19: of two that become one the later time counts, so no tombstone gets older by it."""
    many = tuple(TombstoneStep(10 * n, 1000 * n, 1) for n in range(1, STEPS_KEPT + 1))
    one_more = (*many, TombstoneStep(9999, many[-1].time_ms + 1, 5))
    result = fold(one_more)
    assert len(result) == STEPS_KEPT
    assert result == (*many[:-1], TombstoneStep(9999, many[-1].time_ms + 1, 6))


def test_the_next_expiry_is_that_of_the_oldest_step_with_tombstones():
    """C21: a log with none has no such time."""
    assert next_expiry_ms(STEPS, 100) == 1100
    assert next_expiry_ms((TombstoneStep(40, 1000, 0), TombstoneStep(90, 2000, 1)), 100) == 2100
    assert next_expiry_ms((TombstoneStep(40, 1000, 0),), 100) is None
    assert next_expiry_ms((), 100) is None
