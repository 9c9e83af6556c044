"""The rate of one replica, which all its copies share.

A copy may take bytes while there is no deficit, and then leaves one that time repays: so the total is within the
rate, except one piece. The rate is read anew all the time, as it may be edited, and so is whether to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

SLICE_S = 0.5
"""The longest sleep before the rate and the stop are read again."""


class SharedThrottle:
    """For several threads. `rate` gives bytes per second, None for no limit."""

    def __init__(self, rate: Callable[[], int | None], monotonic_ms: Callable[[], int]) -> None:
        self._rate = rate
        self._monotonic_ms = monotonic_ms
        self._lock = Lock()
        self._filled_ms = monotonic_ms()
        self._deficit_bytes = 0.0

    def acquire(self, count: int, stops: Callable[[], bool], sleep: Callable[[float], None]) -> bool:
        """Waits until `count` bytes may be moved; False if the copy is to stop."""
        while not stops():
            wait_s = self._wait_s(count)
            if wait_s <= 0:
                return True
            sleep(min(SLICE_S, wait_s))
        return False

    def _wait_s(self, count: int) -> float:
        """0 if the bytes were taken, else seconds until the deficit is repaid."""
        with self._lock:
            now_ms, rate_bytes = self._monotonic_ms(), self._rate()
            passed_s, self._filled_ms = (now_ms - self._filled_ms) / 1000, now_ms
            if rate_bytes is None:
                self._deficit_bytes = 0.0
                return 0.0
            self._deficit_bytes = max(0.0, self._deficit_bytes - passed_s * rate_bytes)
            if self._deficit_bytes > 0:
                return self._deficit_bytes / rate_bytes
            self._deficit_bytes += count
            return 0.0
