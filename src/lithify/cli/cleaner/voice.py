"""What a cleaner prints: an event a line, and what happens before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lithify.cli.invocation import Invocation
from lithify.cli.terminal.drawing import accented
from lithify.reports.events import EventKind

if TYPE_CHECKING:
    from lithify.reports.events import CleanerEvent


@dataclass(slots=True)
class CleanerVoice:
    """`endless`: its output is its supervisor's, and without a reader it ends."""

    invocation: Invocation
    cleaner_id: str | None
    endless: bool
    has_failed: bool = False

    def tell(self, event: CleanerEvent) -> None:
        """Prints an event."""
        if event.kind in (EventKind.FAILED, EventKind.QUARANTINED, EventKind.TROUBLE):
            self.has_failed = True
        self.invocation.tell(event, accented(event.line()), endless=self.endless)

    def tell_fact(self, kind: str, facts: Mapping[str, Any]) -> None:
        """Prints an event from outside of the loop."""
        from lithify.api.wiring import machine
        from lithify.api.wiring.system_clock import SystemClock
        from lithify.reports.events import CleanerEvent

        known = {"last_look_ms": None, **facts} if kind == EventKind.STOPPED else facts
        self.tell(CleanerEvent(EventKind(kind), SystemClock().now_ms(), self.cleaner_id or machine(), facts=known))
