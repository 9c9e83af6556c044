"""Time and new ids: nothing below `wiring` reads a clock or makes up an id by itself."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """The only source of time and of new ids below `wiring`."""

    def now_ms(self) -> int: ...
    def monotonic_ms(self) -> int:
        """Time that only goes forward, since some moment: for distances on this machine."""
        ...

    def sleep(self, seconds: float) -> None: ...
    def new_id(self) -> str:
        """A short, unique id of letters and digits."""
        ...


def ahead_ms(clock: Clock) -> int:
    """The time, before the one that only goes forward: another number is a clock that was set meanwhile."""
    return clock.now_ms() - clock.monotonic_ms()
