"""The request that a cleaner stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event

from lithify.errors import LithifyError


@dataclass(slots=True)
class Stop:
    """Set from any thread, or from the handler of a signal."""

    asked: Event = field(default_factory=Event)
    gives_up: Event = field(default_factory=Event)
    """Set when running rounds are to be abandoned."""
    reason: str = ""
    code: str | None = None
    """Of the error that is the reason; None if it stops in order."""

    @property
    def failed(self) -> bool:
        return self.code is not None

    def ask(self, reason: str) -> None:
        """Requests the stop: no new step begins from now on. The first reason is kept."""
        self._ask(reason, None)

    def fail(self, error: LithifyError) -> None:
        """The same, for an error."""
        self._ask(str(error), error.code)

    def _ask(self, reason: str, code: str | None) -> None:
        if not self.asked.is_set():
            self.reason, self.code = reason, code
        self.asked.set()
