"""A clock that only a test moves."""

from __future__ import annotations


class FakeClock:
    """`Clock` for tests: time moves by `advance`, by `set`, and by what is slept."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0
        self._ids = 0

    def now_ms(self) -> int:
        return self._now_ms

    def sleep(self, seconds: float) -> None:
        self.advance(round(seconds * 1000))

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def new_id(self) -> str:
        self._ids += 1
        return f"run{self._ids:04d}"

    def advance(self, by_ms: int) -> None:
        """Moves on, or back with a negative number, which time that only goes forward does not."""
        self._now_ms += by_ms
        self._monotonic_ms += max(0, by_ms)

    def set(self, now_ms: int) -> None:
        self._now_ms = now_ms
