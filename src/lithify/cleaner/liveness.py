"""Whether a cleaner gets on with its looks at the topics: as it sees itself, and as others may ask (C50).

A cleaner in which they do not is of no use to anybody:

    look   ├─ topic ─ topic ─ topic ─┤   ├─ topic ─ ...                 ← every one is a step
    ticks  . . . . . . . . . . . . . . . . . . . . . . . .
                                                    ├─ limit ─┤  without a step: it stalls

A look may take as long as there are topics, so what counts is not its end but that it gets on. One
that fails as a whole (a catalog that is away) is no step. Beside the leases a cleaner notes when its
last look was completed, for people only.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.cleaner.events import EventReporter
from lithify.cleaner.options import CleanerOptions
from lithify.errors import CoordinationError
from lithify.ports.leases import Coordination
from lithify.reports.cleaner_note import CleanerNote

INTERVALS = 40
LEAST_MS = 600_000
TICK_MS = 1_000
"""What is more between two ticks is time in which this process did not run, and no look could get on."""


@dataclass(slots=True)
class Watchdog:
    """Is asked again and again, with the number of steps so far. For one thread."""

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


@dataclass(slots=True)
class NoteWriter:
    """Writes down when the cleaner last looked. For one thread. A failure is told once: looks do not depend on it."""

    coordination: Coordination
    options: CleanerOptions
    reporter: EventReporter
    started_ms: int
    _noted_ms: int | None = -1
    _failed_with: str = ""

    def write(self, looked_ms: int | None) -> None:
        """`looked_ms` is when the last look was completed; None if none was yet."""
        if looked_ms == self._noted_ms:
            return
        self._noted_ms, options = looked_ms, self.options
        note = CleanerNote(options.cleaner_id, options.scope, options.interval_ms, self.started_ms, looked_ms)
        try:
            self.coordination.put_note(note)
        except CoordinationError as error:
            if str(error) != self._failed_with:
                self.reporter.trouble(None, error)
            self._failed_with = str(error)
        else:
            self._failed_with = ""
