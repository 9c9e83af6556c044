"""The machine's clock and random source: nothing below wiring reads either."""

from __future__ import annotations

import time
import uuid

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's clock, and ids from its random source."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        # Counts suspended time where the system has such a clock: leases expire during it.
        return time.clock_gettime_ns(_STEADY) // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def new_id(self) -> str:
        return uuid.uuid4().hex[:12]
