"""What a gateway reports of the standing jobs that it runs: an event, one line of its output, for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lithify.model.settings.units import format_duration, format_time, plural
from lithify.reports.events import recovered_text, timed_line
from lithify.reports.page import Line
from lithify.reports.page.wording import coded


class JobEventKind(StrEnum):
    """What happened."""

    STARTED = "job-started"
    ENDED = "job-ended"
    """A run ended by itself."""
    STOPPED = "job-stopped"
    """A run was ended: the job was paused, removed or changed, its lease is lost, or the gateway stops."""
    TROUBLE = "trouble"
    """The database cannot be reached, or a command cannot be started."""
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One line of a gateway's log. `facts` have names with units last, and values that JSON knows."""

    kind: JobEventKind
    time_ms: int
    gateway: str
    job: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Flat: `time`, `event`, `gateway`, `job`, then the facts."""
        return {
            "time": format_time(self.time_ms),
            "event": self.kind.value,
            "gateway": self.gateway,
            "job": self.job,
            **self.facts,
        }

    def line(self) -> Line:
        """`2026-11-29T10:00:00Z  job-ended    orders-in: ...`"""
        job = "" if self.job is None else f"{self.job}: "
        return timed_line(
            self.time_ms, self.kind.ljust(11), _COLOURS.get(self.kind), f"{job}{_TEXTS[self.kind](self.facts)}"
        )


_COLOURS = {JobEventKind.TROUBLE: "yellow"}


def _ended(facts: Mapping[str, Any]) -> str:
    text = f"exit {facts['exit_code']} after {format_duration(facts['duration_ms'])}"
    if facts["failures"]:
        text += f", failed {plural(facts['failures'], 'time')}, again at {format_time(facts['retry_ms'])}"
    if facts["failures"] and facts["error"] is not None:
        text += f": {coded(facts['error'], facts['error_code'])}"
    return text


_TEXTS: Mapping[JobEventKind, Callable[[Mapping[str, Any]], str]] = {
    JobEventKind.STARTED: lambda facts: str(facts["command"]),
    JobEventKind.ENDED: _ended,
    JobEventKind.STOPPED: lambda facts: f"{facts['reason']}; exit {facts['exit_code']}",
    JobEventKind.TROUBLE: lambda facts: coded(facts["error"], facts["error_code"]),
    JobEventKind.RECOVERED: recovered_text,
}
