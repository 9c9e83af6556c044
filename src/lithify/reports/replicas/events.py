"""What a daemon reports of the replicas that it keeps up: an event, one line of its output, for each thing it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lithify.model.settings.units import format_time


class ReplicaEventKind(StrEnum):
    """What happened."""

    STARTED = "started"
    COPYING = "copying"
    """A pass copies files; every few seconds."""
    COPIED = "copied"
    """The replica of a topic has a newer version of its source."""
    FAILED = "failed"
    """A pass failed and will be retried."""
    ABANDONED = "abandoned"
    """A pass was abandoned: the daemon stops, the replica was paused or removed, or its lease is lost."""
    TROUBLE = "trouble"
    """Something other than a pass failed: the source, a target, or the database cannot be reached."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ReplicaEvent:
    """One line of a daemon's log. `facts` have names with units last, and values that JSON knows."""

    kind: ReplicaEventKind
    time_ms: int
    daemon: str
    replica: str | None = None
    topic: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Flat: `time`, `event`, `daemon`, `replica`, `topic`, then the facts."""
        return {
            "time": format_time(self.time_ms),
            "event": self.kind.value,
            "daemon": self.daemon,
            "replica": self.replica,
            "topic": self.topic,
            **self.facts,
        }
