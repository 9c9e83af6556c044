"""A throttle bounds what goes through it, whatever is asked for and whenever (C40)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.columnar.throttle import BURST_SECONDS, Throttle


class FakeTime:
    """A clock that moves only when somebody sleeps or time is let pass."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def clock(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.seconds += seconds


def test_bytes_take_as_long_as_the_rate_says():
    time = FakeTime()
    throttle = Throttle(1000, time.clock, time.sleep)
    throttle.acquire(500)
    assert time.seconds == pytest.approx(100.5)
    throttle.acquire(2000)
    assert time.seconds == pytest.approx(102.5)


def test_time_spent_elsewhere_counts_up_to_the_burst():
    time = FakeTime()
    throttle = Throttle(1000, time.clock, time.sleep)
    time.seconds += 60
    throttle.acquire(int(1000 * BURST_SECONDS))
    assert time.seconds == 160.0
    throttle.acquire(1000)
    assert time.seconds == pytest.approx(161.0)


def test_nothing_is_waited_for_nothing():
    time = FakeTime()
    Throttle(1, time.clock, time.sleep).acquire(0)
    assert time.seconds == 100.0


@pytest.mark.parametrize("rate", [0, -1])
def test_a_rate_that_never_ends_is_refused(rate):
    time = FakeTime()
    with pytest.raises(ValueError, match="never end"):
        Throttle(rate, time.clock, time.sleep)


@given(st.floats(1, 1e6), st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 5)), max_size=20))
def test_never_more_than_the_rate_allows(rate, steps):
    time = FakeTime()
    throttle = Throttle(rate, time.clock, time.sleep)
    taken = 0
    for count, elsewhere in steps:
        throttle.acquire(count)
        taken += count
        assert taken <= rate * (time.seconds - 100.0) * (1 + 1e-9) + 1e-3
        time.seconds += elsewhere
