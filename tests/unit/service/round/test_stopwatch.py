"""What the phases of a run take, alone and in several threads."""

from __future__ import annotations

from lithify.service.round.stopwatch import Stopwatch
from lithify.testing.fake_clock import FakeClock


def test_a_phase_is_summed_over_attempts():
    clock = FakeClock()
    watch = Stopwatch(clock)
    for _ in range(2):
        with watch.phase("plan"):
            clock.advance(100)
        clock.advance(1_000)
    assert watch.phases_ms == {"plan": 200}


def test_a_phase_that_has_not_ended_is_not_reported():
    clock = FakeClock()
    watch = Stopwatch(clock)
    with watch.phase("commit"):
        clock.advance(100)
        assert watch.phases_ms == {}


def test_time_that_two_spend_in_a_phase_counts_once():
    clock = FakeClock()
    watch = Stopwatch(clock)
    first, second = watch.phase("commit"), watch.phase("commit")
    first.__enter__()
    clock.advance(10)
    second.__enter__()
    clock.advance(20)
    first.__exit__(None, None, None)
    assert watch.phases_ms == {"commit": 30}, "as far as it has come, for the report of a round that was left"
    clock.advance(40)
    second.__exit__(None, None, None)
    assert watch.phases_ms == {"commit": 70}
