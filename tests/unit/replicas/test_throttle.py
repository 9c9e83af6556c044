"""The rate that all copies of a replica share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from lithify.daemons.replicas.replica_rate import SharedThrottle
from lithify.testing.fake_clock import FakeClock


def test_the_rate_is_kept_but_for_one_piece() -> None:
    clock = FakeClock()
    throttle = SharedThrottle(lambda: 1_000, clock.monotonic_ms)
    for _ in range(20):
        assert throttle.acquire(500, lambda: False, clock.sleep)
    assert clock.monotonic_ms() == 9_500


def test_several_threads_share_it() -> None:
    clock, lock = FakeClock(), Lock()
    throttle = SharedThrottle(lambda: 1_000, clock.monotonic_ms)

    def sleep(seconds: float) -> None:
        with lock:
            clock.sleep(seconds)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: throttle.acquire(100, lambda: False, sleep), range(100)))
    assert clock.monotonic_ms() >= 9_900


def test_another_rate_is_in_force_at_once() -> None:
    clock = FakeClock()
    rates: list[int | None] = [10]
    throttle = SharedThrottle(lambda: rates[0], clock.monotonic_ms)
    throttle.acquire(1_000, lambda: False, clock.sleep)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        rates[0] = None

    throttle.acquire(1_000, lambda: False, sleep)
    assert clock.monotonic_ms() <= 500


def test_one_that_is_to_stop_waits_no_longer() -> None:
    clock = FakeClock()
    throttle = SharedThrottle(lambda: 1, clock.monotonic_ms)
    assert throttle.acquire(1_000_000, lambda: False, clock.sleep)
    assert not throttle.acquire(1, lambda: clock.monotonic_ms() > 2_000, clock.sleep)
    assert clock.monotonic_ms() <= 2_500
