"""Bounds how many bytes a second one task moves (C40).

    rate of the run ──► / tasks that can run at once ──► one `Throttle` per task and direction

A reader calls `acquire` before it reads, so the bound holds at every moment; a writer, which knows
its compressed bytes only afterwards, calls it after each row group and is at most one ahead.
"""

from __future__ import annotations

from collections.abc import Callable

BURST_SECONDS = 1.0
"""Time not used for moving bytes that may be made up for."""


class Throttle:
    """A token bucket. `rate_bytes` are bytes per second; `clock` is monotonic, in seconds."""

    def __init__(self, rate_bytes: float, clock: Callable[[], float], sleep: Callable[[float], None]) -> None:
        if rate_bytes <= 0:
            raise ValueError(f"a rate of {rate_bytes} bytes per second would never end")
        self._rate_bytes = rate_bytes
        self._clock = clock
        self._sleep = sleep
        self._paid_until = clock()  # the bucket starts empty: no burst at the start of a task

    def acquire(self, count: int) -> None:
        """Takes `count` bytes out of the bucket and waits until they have come in."""
        now = self._clock()
        self._paid_until = max(self._paid_until, now - BURST_SECONDS) + count / self._rate_bytes
        if self._paid_until > now:
            self._sleep(self._paid_until - now)


def unthrottled(count: int) -> None:
    """What a run without a limit calls in place of `Throttle.acquire`."""
