"""A throttle bounds what goes through it, whatever is asked for and whenever (C40)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.columnar.pace import BURST_SECONDS, SLICE_SECONDS, Throttle


class FakeTime:
    """A clock that moves only when a task sleeps or a test advances it."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def clock(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.seconds += seconds


def throttle_at(rate, time):
    """One whose rate stays as it is."""
    return Throttle(lambda: rate, time.clock, time.sleep)


def test_bytes_take_as_long_as_the_rate_says():
    time = FakeTime()
    throttle = throttle_at(1000, time)
    throttle.acquire(500)
    assert time.seconds == pytest.approx(100.5)
    throttle.acquire(2000)
    assert time.seconds == pytest.approx(102.5)


def test_time_spent_elsewhere_counts_up_to_the_burst():
    time = FakeTime()
    throttle = throttle_at(1000, time)
    throttle.acquire(0)
    time.seconds += 60
    throttle.acquire(int(1000 * BURST_SECONDS))
    assert time.seconds == 160.0
    throttle.acquire(1000)
    assert time.seconds == pytest.approx(161.0)


def test_nothing_is_waited_for_nothing():
    time = FakeTime()
    throttle_at(1, time).acquire(0)
    assert time.seconds == 100.0


def test_nothing_is_waited_for_without_a_limit():
    time = FakeTime()
    throttle_at(None, time).acquire(10**12)
    assert time.seconds == 100.0


@given(st.floats(1e3, 1e6), st.lists(st.tuples(st.integers(0, 10**5), st.floats(0, 5)), max_size=20))
def test_never_more_than_the_rate_allows(rate, steps):
    time = FakeTime()
    throttle = throttle_at(rate, time)
    taken = 0
    for count, elsewhere in steps:
        throttle.acquire(count)
        taken += count
        assert taken <= rate * (time.seconds - 100.0) * (1 + 1e-9) + 1e-2
        time.seconds += elsewhere


class ChangingRate:
    """A rate that is another one from some times on."""

    def __init__(self, time, first, *changes):
        self.time = time
        self.first = first
        self.changes = sorted(changes, key=lambda change: change[0])

    def __call__(self):
        rate = self.first
        for at, other in self.changes:
            rate = other if self.time.seconds >= at else rate
        return rate


@pytest.mark.parametrize("raised", [1e6, None])
def test_a_raised_rate_counts_while_a_task_sleeps_under_a_tiny_one(raised):
    """Of a row group of 64 MB at one byte a second, which would take two years."""
    time = FakeTime()
    Throttle(ChangingRate(time, 1, (130.5, raised)), time.clock, time.sleep).acquire(64 * 10**6)
    owed = 0 if raised is None else 64
    assert 130.5 + owed - 0.1 <= time.seconds <= 130.5 + SLICE_SECONDS + owed


def test_a_new_rate_counts_for_a_task_that_never_waited():
    time = FakeTime()
    throttle = Throttle(ChangingRate(time, None, (200, 1000)), time.clock, time.sleep)
    throttle.acquire(10**9)
    time.seconds = 200
    throttle.acquire(5000)
    assert time.seconds == pytest.approx(205)


def test_what_is_owed_is_paid_at_the_lowered_rate():
    time = FakeTime()
    throttle = Throttle(ChangingRate(time, 1000, (102, 10)), time.clock, time.sleep)
    throttle.acquire(3000)
    assert time.seconds == pytest.approx(202)


class Allowance:
    """Adds up what the rates of a throttle have allowed since there last was no limit."""

    def __init__(self, time, rate):
        self.time = time
        self.rate = rate
        self.told = None
        self.told_at = time.seconds
        self.bytes = 0.0

    def __call__(self):
        now, found = self.time.seconds, self.rate()
        self.bytes = 0.0 if found is None or self.told is None else self.bytes + (now - self.told_at) * self.told
        self.told, self.told_at = found, now
        return found


@given(
    st.lists(st.tuples(st.floats(0, 60), st.one_of(st.none(), st.floats(1e3, 1e6))), max_size=4),
    st.lists(st.tuples(st.integers(0, 10**5), st.floats(0, 5)), max_size=20),
)
def test_never_more_than_the_rates_have_allowed_together(changes, steps):
    """C40: whatever the rates were, and whenever they changed."""
    time = FakeTime()
    allowance = Allowance(time, ChangingRate(time, 1000, *((100.0 + at, other) for at, other in changes)))
    throttle = Throttle(allowance, time.clock, time.sleep)
    moved = 0
    for count, elsewhere in steps:
        throttle.acquire(count)
        moved = 0 if allowance.told is None else moved + count
        assert moved <= allowance.bytes * (1 + 1e-9) + 1e-2
        time.seconds += elsewhere
