"""What both narrations report: where a copy begins, what is reported seldom, and that a system is away and back.

a cluster is silent for `SILENT_MS` ─► outage, repeated each `QUIET_MS` ─► recovered, if an outage was told
the warehouse is away               ─► outage, once                     ─► recovered
"""

from __future__ import annotations

from collections.abc import Callable

from lithify.errors import LithifyError
from lithify.model.settings.units import format_duration
from lithify.ports.clock import Clock

SILENT_MS, QUIET_MS = 5_000, 60_000


def begins_text(offset: int | None, lag: str, *, new: bool) -> str:
    """`begins, lag 2 offsets`, or `continues at offset 5, lag 1 offset`; `offset` is the only log's."""
    where = "" if offset is None else f" at offset {offset}"
    return f"{'begins' if new else f'continues{where}'}, {lag}"


class Seldom:
    """Lets the same thing be told at most once in `QUIET_MS`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reported_ms: dict[str, int] = {}

    def may_tell(self, what: str) -> bool:
        """Whether it is time to; it counts as told then."""
        now_ms, reported_ms = self._clock.monotonic_ms(), self._reported_ms.get(what)
        if reported_ms is not None and now_ms - reported_ms < QUIET_MS:
            return False
        self._reported_ms[what] = now_ms
        return True


class Outages:
    """Says so of one system, called `who` in the texts; `tell` gets the event and the text."""

    def __init__(self, who: str, clock: Clock, tell: Callable[[str, str], None]) -> None:
        self._who, self._clock, self._tell = who, clock, tell
        self._since_ms: int | None = None
        self._reported_ms: int | None = None

    def look(self, *, silent: bool) -> None:
        """Takes whether the system is silent right now."""
        now_ms = self._clock.monotonic_ms()
        if not silent:
            if self._reported_ms is not None and self._since_ms is not None:
                for_ms = now_ms - self._since_ms
                self._tell("recovered", f"{self._who} answers again, after {format_duration(for_ms)}")
            self._since_ms = self._reported_ms = None
            return
        if self._since_ms is None:
            self._since_ms = now_ms
        silent_ms, reported_ms = now_ms - self._since_ms, self._reported_ms
        if silent_ms >= SILENT_MS and (reported_ms is None or now_ms - reported_ms >= QUIET_MS):
            self._reported_ms = now_ms
            self._tell("outage", f"{self._who} has not answered for {format_duration(silent_ms)}; waiting for it")


class WarehouseOutages:
    """Says so of the warehouse, which has no pulse: its calls fail, and then one succeeds."""

    def __init__(self, clock: Clock, tell: Callable[[str, str], None]) -> None:
        self._clock, self._tell = clock, tell
        self._since_ms: int | None = None

    def away(self, error: LithifyError) -> None:
        if self._since_ms is None:
            self._since_ms = self._clock.monotonic_ms()
            self._tell("outage", f"{error.message}; waiting until it answers")

    def answers(self) -> None:
        if self._since_ms is not None:
            for_ms, self._since_ms = self._clock.monotonic_ms() - self._since_ms, None
            self._tell("recovered", f"the warehouse answers again, after {format_duration(for_ms)}")
