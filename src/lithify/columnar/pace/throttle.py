"""Bounds the bytes per second that one task reads or writes (C40).

    rate of the run ──► / concurrent tasks ──► one `Throttle` per task and direction

A reader calls `acquire` before it reads, so it never exceeds the rate; a writer, which knows its compressed
bytes only afterwards, calls it after each row group and exceeds it by one row group at most.

The rate may change while a task waits: it waits in slices, a deficit is repaid at the new rate, and a
surplus under the old rate is dropped. So a new rate applies at once, and the total stays below what the
rates allowed.
"""

from __future__ import annotations

from collections.abc import Callable

BURST_SECONDS = 1.0
"""Size of the bucket: idle time that may be made up for later."""

SLICE_SECONDS = 1.0
"""Seconds of the longest sleep before the rate is read again."""

_PAID_SECONDS = 1e-9
"""A deficit worth less time than this is carried over: no sleep is that short."""


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
        self._level_bytes = 0.0  # negative: a deficit; starts empty, so a task does not start with a burst

    def acquire(self, count: int) -> None:
        """Takes `count` bytes from the bucket and sleeps until the deficit is repaid."""
        self._fill()
        self._level_bytes -= count
        while self._rate_bytes is not None and self._level_bytes < -self._rate_bytes * _PAID_SECONDS:
            self._sleep(min(SLICE_SECONDS, -self._level_bytes / self._rate_bytes))
            self._fill()
        if self._rate_bytes is None:
            self._level_bytes = 0.0  # without a limit there is neither deficit nor surplus

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
    """Does nothing: `Throttle.acquire` of a run without a limit."""
