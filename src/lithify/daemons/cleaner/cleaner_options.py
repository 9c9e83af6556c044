"""The options of a cleaner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lithify.ports.engine import RunLimits
from lithify.reports.events import CleanerEvent

EventListener = Callable[[CleanerEvent], None]
"""Called with every event of a cleaner, from several threads, one at a time."""


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """How far one run of rounds is, by the steps of its present phase."""

    work: str
    """Which run of this cleaner."""
    topics: tuple[str, ...]
    begun_ms: int
    phase: str = ""
    done: int = 0
    total: int = 0
    ended: bool = False


ProgressListener = Callable[[RoundProgress], None]
"""Called as often as rounds proceed, from several threads at once: it has to return at once."""

INTERVAL_MS = 15_000
"""Between two checks of all topics: Kafka's `log.cleaner.backoff.ms` has the same default."""

LEASE_MS = 30_000
"""Without a renewal for this long a cleaner loses its work to the others."""

SWEEP_INTERVAL_MS = 3_600_000
"""Between two sweeps of a topic with new commits; without any the interval doubles each time."""


@dataclass(frozen=True, slots=True)
class CleanerOptions:
    """`cleaner_id` is unique among cleaners. The rates in `limits` are for all its rounds together (C40)."""

    cleaner_id: str
    scope: str
    """The name that all its cleaners have for the catalog."""
    threads: int = 1
    interval_ms: int = INTERVAL_MS
    lease_ms: int = LEASE_MS
    sweep_interval_ms: int = SWEEP_INTERVAL_MS
    limits: RunLimits = RunLimits()
