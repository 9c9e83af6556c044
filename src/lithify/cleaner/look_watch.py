"""Whether the looks at the topics get on: a cleaner in which they do not is of no use to anybody (C50).

    look   ├─ topic ─ topic ─ topic ─┤   ├─ topic ─ ...                 ← every one is a step
    ticks  . . . . . . . . . . . . . . . . . . . . . . . .
                                                    ├─ limit ─┤  without a step: it stands still

A look may take as long as there are topics, so what counts is not its end but that it gets on. One
that fails as a whole (a catalog that is away) is no step.
"""

from __future__ import annotations

from dataclasses import dataclass

INTERVALS = 40
LEAST_MS = 600_000
TICK_MS = 1_000
"""What is more between two ticks is time in which this process did not run, and no look could get on."""


@dataclass(slots=True)
class LookWatch:
    """Is told again and again how many steps there were. For one thread."""

    interval_ms: int
    _steps: int = -1
    _still_ms: int = 0
    _ticked_ms: int | None = None

    @property
    def limit_ms(self) -> int:
        return max(INTERVALS * self.interval_ms, LEAST_MS)

    def stands_still(self, steps: int, now_ms: int) -> bool:
        """Whether there was no step for too long; `now_ms` is of a clock that only goes forward."""
        since_ms = 0 if self._ticked_ms is None else min(now_ms - self._ticked_ms, TICK_MS)
        self._ticked_ms = now_ms
        self._still_ms = self._still_ms + since_ms if steps == self._steps else 0
        self._steps = steps
        return self._still_ms >= self.limit_ms
