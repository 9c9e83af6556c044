"""The request that a cleaner stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event


@dataclass(slots=True)
class Stop:
    """Set from any thread, or from the handler of a signal."""

    asked: Event = field(default_factory=Event)
    gives_up: Event = field(default_factory=Event)
    """Set when running rounds are to be abandoned."""
    reason: str = ""
    failed: bool = False

    def ask(self, reason: str, *, failed: bool = False) -> None:
        """Requests the stop: no new step begins from now on. The first reason is kept."""
        if not self.asked.is_set():
            self.reason, self.failed = reason, failed
        self.asked.set()
