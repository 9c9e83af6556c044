"""What the cleaners of a soak said, as figures, and which of their errors nothing explains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any

from soak.feeder import Deletion
from soak.outages import Outages
from soak.programs import Life
from soak.troubles import Strike

ERRORS = ("failed", "quarantined", "trouble")
AFTER_A_DELETION_MS = 60_000
"""A round that began before a topic was deleted may take so long to find out."""
AFTER_A_FREEZE_MS = 60_000
"""And so long what broke while a cleaner was frozen."""

_GONE = re.compile(
    r"is missing|is gone|no longer exists|not there any more|no such topic|does not exist|deleted and recreated|no file"
)
_BROKEN = re.compile(r"cannot be reached|connection|timed? ?out|heartbeat|lease", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class History:
    """What happened, apart from what the cleaners say."""

    deletions: Sequence[Deletion]
    strikes: Sequence[Strike]
    outages: Outages


def explanation(event: dict[str, Any], history: History) -> str | None:
    """Why an error had to be expected; None if it had not."""
    at_ms = time_ms(event)
    teller, topic = event.get("cleaner", event.get("gateway")), event.get("topic")  # events of standing jobs: a gateway
    for deletion in history.deletions:
        found_out = deletion.begun_ms - 1_000 <= at_ms <= deletion.ended_ms + AFTER_A_DELETION_MS
        if topic == deletion.topic and found_out and _GONE.search(event["error"]):
            return "the topic was deleted meanwhile"
    for strike in history.strikes:
        if strike.kind == "freeze" and teller == strike.cleaner and strike.thawed_ms is not None:
            broke = strike.time_ms <= at_ms <= strike.thawed_ms + AFTER_A_FREEZE_MS
            if broke and _BROKEN.search(event["error"]):
                return "the cleaner was frozen"
    return history.outages.explain(at_ms, event["error"])


@dataclass(slots=True)
class Told:
    """Figures of everything that was said."""

    kinds: Counter[str] = field(default_factory=Counter)
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[dict[str, Any]] = field(default_factory=list)
    rounds_changed: int = 0
    jobs: int = 0
    topics_per_job: float = 0.0
    most_topics_per_job: int = 0
    records_in: int = 0
    records_removed: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    round_ms: int = 0
    longest_round_ms: int = 0
    longest_overdue_ms: int = 0
    usual_overdue_ms: int = 0
    overdue_rounds: int = 0
    usual_look_ms: int = 0
    longest_look_ms: int = 0
    longest_start_s: float = 0.0
    swept_files: int = 0
    swept_bytes: int = 0
    versions_expired: int = 0


def told(lives: Iterable[Life], history: History) -> Told:
    """Reads the logs of all lives."""
    figures = Told()
    jobs: Counter[str] = Counter()
    overdue, looks, rounds = [], [], []
    for life in lives:
        for event in life.events():
            kind = event["event"]
            figures.kinds[kind] += 1
            match kind:
                case "started":
                    figures.longest_start_s = max(figures.longest_start_s, (time_ms(event) - life.started_ms) / 1000)
                case "round":
                    jobs[event["run_id"]] += 1
                    _add_round(figures, event)
                    rounds.append(event["duration_ms"])
                    overdue += [event["overdue_ms"]] if event["overdue_ms"] else []
                case "looked":
                    looks.append(event["duration_ms"])
                case "swept":
                    figures.swept_files += event["files"]
                    figures.swept_bytes += event["bytes"]
                case "expired":
                    figures.versions_expired += len(event["versions"])
                case _ if kind in ERRORS:
                    why = explanation(event, history)
                    if why is None:
                        figures.unexplained.append(event)
                    else:
                        figures.explained[why] += 1
    figures.jobs = len(jobs)
    figures.topics_per_job = round(sum(jobs.values()) / len(jobs), 1) if jobs else 0.0
    figures.most_topics_per_job = max(jobs.values(), default=0)
    figures.longest_round_ms = max(rounds, default=0)
    figures.longest_overdue_ms, figures.overdue_rounds = max(overdue, default=0), len(overdue)
    figures.usual_overdue_ms = int(median(overdue)) if overdue else 0
    figures.longest_look_ms, figures.usual_look_ms = max(looks, default=0), int(median(looks)) if looks else 0
    return figures


def time_ms(event: dict[str, Any]) -> int:
    """The time of an event, epoch ms."""
    return int(datetime.fromisoformat(event["time"]).timestamp() * 1000)


def _add_round(figures: Told, event: dict[str, Any]) -> None:
    figures.rounds_changed += event["changed"]
    figures.records_in += event["records_in"]
    figures.records_removed += event["removed"]
    figures.bytes_read += event["bytes_read"]
    figures.bytes_written += event["bytes_written"]
    figures.round_ms += event["duration_ms"]
