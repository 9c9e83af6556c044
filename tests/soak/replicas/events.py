"""What the daemons of a soak said, as figures, and which of their errors nothing explains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from soak.events import time_ms
from soak.feeder import Deletion
from soak.outages import Outages
from soak.programs import Life

AFTER_A_FREEZE_MS = 60_000
_BROKEN = re.compile(r"cannot be reached|connection|timed? ?out|lease", re.IGNORECASE)
_RECREATED = re.compile(r"recreated|another topic|no such topic|no longer|not there|is gone|deleted", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Disturbances:
    """What happened, apart from what the daemons say."""

    deletions: Sequence[Deletion]
    strikes: Sequence[tuple[str, str, int]]
    """Which daemon, what, and when."""
    outages: Outages

    def explain(self, event: dict[str, Any]) -> str | None:
        """Why an error had to be expected; None if it had not."""
        at_ms = time_ms(event)
        for deletion in self.deletions:
            told = event["topic"] == deletion.topic and deletion.begun_ms - 1_000 <= at_ms
            if told and _RECREATED.search(event["error"]):
                return "the topic was recreated"
        for daemon, kind, thawed_ms in self.strikes:
            broke = kind == "thaw" and thawed_ms <= at_ms <= thawed_ms + AFTER_A_FREEZE_MS
            if broke and event["daemon"] == daemon and _BROKEN.search(event["error"]):
                return "the daemon was frozen"
        return self.outages.explain(at_ms, event["error"])


@dataclass(slots=True)
class DaemonsTold:
    """Figures of everything that was said."""

    kinds: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[dict[str, Any]] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    files_reused: int = 0
    bytes_reused: int = 0


def told_by_daemons(lives: Iterable[Life], disturbances: Disturbances) -> DaemonsTold:
    """Reads the logs of all lives."""
    figures = DaemonsTold()
    for event in (event for life in lives for event in life.events()):
        figures.kinds[event["event"]] += 1
        match event["event"]:
            case "copied":
                figures.files += event["files_copied"]
                figures.bytes += event["bytes_copied"]
                figures.files_reused += event["files_reused"]
                figures.bytes_reused += event["bytes_reused"]
            case "failed" | "trouble":
                why = disturbances.explain(event)
                if why is None:
                    figures.unexplained.append(event)
                else:
                    figures.explained[why] += 1
    return figures
