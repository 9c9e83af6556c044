"""What a cleaner reports of its work: an event, one line of its output, for each thing it did, and its note.

It stores the note for `status` in another process. The field names are the JSON keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lithify.model.settings.units import format_time
from lithify.reports.report import Report


class EventKind(StrEnum):
    """What happened."""

    STARTED = "started"
    LOOKED = "looked"
    """A look at all topics of the catalog was completed."""
    ROUND = "round"
    """One topic was compacted."""
    FAILED = "failed"
    """One log failed and will be retried."""
    QUARANTINED = "quarantined"
    """One log failed for the last time."""
    ABANDONED = "abandoned"
    """A round was abandoned: the cleaner stops, or its lease is lost."""
    CONFLICT = "conflict"
    """Other commits changed a log during a round, too often."""
    RETAINED = "retained"
    INHERITED = "inherited"
    """One topic got the settings that its stream has by now."""
    EXPIRED = "expired"
    """Kept versions expired by their age."""
    SWEPT = "swept"
    TROUBLE = "trouble"
    """Something other than a round failed: an unreadable topic, an unreachable database."""
    RECOVERED = "recovered"
    """What was in trouble all the time works again."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class CleanerEvent:
    """One line of a cleaner's log. `facts` have names with units last, and values that JSON knows."""

    kind: EventKind
    time_ms: int
    cleaner: str
    topic: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Flat: `time`, `event`, `cleaner`, `topic`, then the facts."""
        return {
            "time": format_time(self.time_ms),
            "event": self.kind.value,
            "cleaner": self.cleaner,
            "topic": self.topic,
            **self.facts,
        }


@dataclass(frozen=True, slots=True)
class CleanerNote(Report):
    """The note of one running cleaner, or of one that did not end in order. Times in epoch ms."""

    cleaner: str
    scope: str
    """The catalog, as all its cleaners name it."""
    interval_ms: int
    """Time between two looks, unless they take longer."""
    started_ms: int
    looked_ms: int | None
    """When its last look at the topics was completed; None if none was yet."""

    @property
    def last_ms(self) -> int:
        """When it last wrote, by the clock of its machine."""
        return self.started_ms if self.looked_ms is None else self.looked_ms
