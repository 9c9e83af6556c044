"""Checks that a cleaner's looks at the topics make progress, and notes them for `status` (C50).

A cleaner whose looks make no progress must be restarted:

    look   ├─ topic ─ topic ─ topic ─┤   ├─ topic ─ ...                 ← every topic is a step
    ticks  . . . . . . . . . . . . . . . . . . . . . . . .
                                                    ├─ limit ─┤  without a step: it stalls

The duration of a look depends on the number of topics, so the watchdog counts steps, not completed looks. A
look that fails as a whole (an unreachable catalog) is no step. In the database of leases a cleaner notes when
its last look was completed; only `status` reads that.
"""

from __future__ import annotations

from dataclasses import dataclass

from lithify.daemons.cleaner.events import EventReporter
from lithify.daemons.cleaner.options import CleanerOptions
from lithify.errors import CoordinationError
from lithify.model.cleaner_note import CleanerNote
from lithify.ports.leases import Coordination

INTERVALS = 40
LEAST_MS = 600_000
TICK_MS = 1_000
"""The most that counts between two ticks: in the rest this process was suspended, and its looks too."""


@dataclass(slots=True)
class Watchdog:
    """Gets the number of steps so far at every tick. For one thread."""

    interval_ms: int
    _steps: int = -1
    _still_ms: int = 0
    _ticked_ms: int | None = None

    @property
    def limit_ms(self) -> int:
        return max(INTERVALS * self.interval_ms, LEAST_MS)

    def stands_still(self, steps: int, now_ms: int) -> bool:
        """Whether there was no step for `limit_ms`; `now_ms` is of a monotonic clock."""
        since_ms = 0 if self._ticked_ms is None else min(now_ms - self._ticked_ms, TICK_MS)
        self._ticked_ms = now_ms
        self._still_ms = self._still_ms + since_ms if steps == self._steps else 0
        self._steps = steps
        return self._still_ms >= self.limit_ms


@dataclass(slots=True)
class NoteWriter:
    """Stores when the cleaner last completed a look. For one thread. An error is reported once, not each time."""

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
