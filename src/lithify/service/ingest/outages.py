"""That a system which is waited for is away, and that it is back.

it is silent for `SILENT_MS` ─► outage, repeated each `QUIET_MS` ─► recovered, if an outage was told
"""

from __future__ import annotations

from collections.abc import Callable

from lithify.model.settings.units import format_duration
from lithify.ports.clock import Clock

SILENT_MS, QUIET_MS = 5_000, 60_000


class Outages:
    """Says so of one system, called `who` in the texts; `tell` gets the event and the text."""

    def __init__(self, who: str, clock: Clock, tell: Callable[[str, str], None]) -> None:
        self._who, self._clock, self._tell = who, clock, tell
        self._since_ms: int | None = None
        self._told_ms: int | None = None

    def look(self, *, silent: bool) -> None:
        """Takes whether the system is silent right now."""
        now_ms = self._clock.monotonic_ms()
        if not silent:
            if self._told_ms is not None and self._since_ms is not None:
                for_ms = now_ms - self._since_ms
                self._tell("recovered", f"{self._who} answers again, after {format_duration(for_ms)}")
            self._since_ms = self._told_ms = None
            return
        if self._since_ms is None:
            self._since_ms = now_ms
        silent_ms, told_ms = now_ms - self._since_ms, self._told_ms
        if silent_ms >= SILENT_MS and (told_ms is None or now_ms - told_ms >= QUIET_MS):
            self._told_ms = now_ms
            self._tell("outage", f"{self._who} has not answered for {format_duration(silent_ms)}; waiting for it")
