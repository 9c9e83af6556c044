"""The options of a cleaner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lithify.ports.engine import RunLimits
from lithify.reports.events import CleanerEvent

EventListener = Callable[[CleanerEvent], None]
"""Is called with everything that a cleaner does, by several threads, one at a time."""

INTERVAL_MS = 15_000
"""Between two looks at all topics: Kafka's `log.cleaner.backoff.ms` has the same default."""

LEASE_MS = 30_000
"""After so long without a renewal other cleaners take over the work of a cleaner."""

SWEEP_INTERVAL_MS = 3_600_000
"""Between two sweeps of a topic that changes; one that does not is swept ever more seldom."""


@dataclass(frozen=True, slots=True)
class CleanerOptions:
    """`cleaner_id` is one that no other cleaner has. Rates are those of all its rounds together (C40)."""

    cleaner_id: str
    scope: str
    """The catalog, as all its cleaners name it."""
    threads: int = 1
    interval_ms: int = INTERVAL_MS
    lease_ms: int = LEASE_MS
    sweep_interval_ms: int = SWEEP_INTERVAL_MS
    limits: RunLimits = RunLimits()
