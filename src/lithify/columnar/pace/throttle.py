"""Bounds how many bytes a second one task moves (C40).

    rate of the run ──► / tasks that can run at once ──► one `Throttle` per task and direction

A reader calls `acquire` before it reads, so the bound holds at every moment; a writer, which knows
its compressed bytes only afterwards, calls it after each row group and is at most one ahead.

The rate may change while a task waits: it waits in slices, what it owes is paid at the new rate,
and time that it saved under the old one is forgotten. So no more ever moves than the rates have
allowed together, and a new one counts at once.
"""

from __future__ import annotations

from collections.abc import Callable

BURST_SECONDS = 1.0
"""Time not used for moving bytes that may be made up for."""

SLICE_SECONDS = 1.0
"""Seconds of the longest sleep before the rate is read again."""

_PAID_SECONDS = 1e-9
"""What is owed for less time than this is carried over: no sleep is that short."""


class Throttle:
    """A token bucket. `rate` gives bytes per second, None for no limit; `clock` is monotonic, in seconds."""

    def __init__(
        self, rate: Callable[[], float | None], clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._filled_at = clock()
        self._rate_bytes: float | None = None
        self._level_bytes = 0.0  # below zero it is owed; the bucket starts empty: no burst at the start of a task

    def acquire(self, count: int) -> None:
        """Takes `count` bytes out of the bucket and waits until they have come in."""
        self._fill()
        self._level_bytes -= count
        while self._rate_bytes is not None and self._level_bytes < -self._rate_bytes * _PAID_SECONDS:
            self._sleep(min(SLICE_SECONDS, -self._level_bytes / self._rate_bytes))
            self._fill()
        if self._rate_bytes is None:
            self._level_bytes = 0.0  # nothing is owed, and nothing saved, where there is no limit

    def _fill(self) -> None:
        now = self._clock()
        if self._rate_bytes is not None:
            came_in = (now - self._filled_at) * self._rate_bytes
            self._level_bytes = min(self._level_bytes + came_in, self._rate_bytes * BURST_SECONDS)
        self._filled_at = now
        rate_bytes = self._rate()
        if rate_bytes != self._rate_bytes:
            self._level_bytes = min(self._level_bytes, 0.0)
            self._rate_bytes = rate_bytes


def unthrottled(count: int) -> None:
    """What a run without a limit calls in place of `Throttle.acquire`."""
