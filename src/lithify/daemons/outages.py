"""What a daemon reports of outages: their begin, seldom that they last, and their end (C50)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from lithify.errors import LithifyError
from lithify.ports.clock import Clock

REPEAT_MS = 600_000
"""An outage that lasts is reported again after this time, not at each try."""

LEASES, GROUPS = "the lease database", "committed positions"
"""What daemons try again and again, as texts name it."""


@dataclass(frozen=True, slots=True)
class _Outage:
    code: str
    since_ms: int
    reported_ms: int


@dataclass(slots=True)
class ToldOutages:
    """The outages that there are, by what is away. For several threads."""

    monotonic_ms: Callable[[], int]
    _known: dict[str, _Outage] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def is_news(self, what: str, code: str) -> bool:
        """Takes that a try has failed with an error of this code; returns whether that is to be told."""
        now_ms = self.monotonic_ms()
        with self._lock:
            known = self._known.get(what)
            if known is not None and known.code == code and now_ms - known.reported_ms < REPEAT_MS:
                return False
            since_ms = now_ms if known is None else known.since_ms
            self._known[what] = _Outage(code, since_ms, now_ms)
            return True

    def over(self, what: str) -> int | None:
        """Takes that a try has succeeded; returns for how long none had, or None if there was no outage."""
        with self._lock:
            known = self._known.pop(what, None)
        return None if known is None else self.monotonic_ms() - known.since_ms


@dataclass(slots=True)
class OutageReporter(ABC):
    """Reports outages in events of the kinds `trouble` and `recovered`, which every daemon has. For several threads."""

    clock: Clock
    _outages: ToldOutages = field(init=False)
    _lock: Lock = field(init=False, default_factory=Lock)
    """Held while an event is handed over: one at a time."""

    def __post_init__(self) -> None:
        self._outages = ToldOutages(self.clock.monotonic_ms)

    @abstractmethod
    def told(self, kind: str, **facts: Any) -> None:
        """Reports one event of that kind. Names of facts end with their units."""

    def outage(self, what: str, error: LithifyError, **facts: Any) -> None:
        """Something that is retried failed: reported when it begins, and seldom while it lasts."""
        if self._outages.is_news(what, error.code):
            self.told("trouble", error=str(error), error_code=error.code, **facts)

    def defect(self, error: LithifyError) -> None:
        """The same of what nothing ends: one that remains the same is reported seldom."""
        self.outage(str(error), error)

    def well(self, what: str) -> None:
        """It succeeded: reported if it had failed before."""
        if (duration_ms := self._outages.over(what)) is not None:
            self.told("recovered", what=what, duration_ms=duration_ms)
