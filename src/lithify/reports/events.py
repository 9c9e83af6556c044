"""What a cleaner says of its work: one event for each thing it did, a line each in its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lithify.model.settings.units import format_time


class EventKind(StrEnum):
    """What happened."""

    STARTED = "started"
    LOOKED = "looked"
    """Went over the topics of the catalog."""
    ROUND = "round"
    """One topic was compacted."""
    FAILED = "failed"
    """One log failed and is tried again."""
    QUARANTINED = "quarantined"
    """One log failed for the last time."""
    ABANDONED = "abandoned"
    """A round was given up: the cleaner stops, or its lease is lost."""
    CONFLICT = "conflict"
    """Somebody else changed a log under a round, too often."""
    RETAINED = "retained"
    EXPIRED = "expired"
    """Kept versions were let go of, since their time is over."""
    SWEPT = "swept"
    TROUBLE = "trouble"
    """Something failed that is no round: a topic that cannot be read, a database that is not there."""
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
