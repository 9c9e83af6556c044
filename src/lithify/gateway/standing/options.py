"""How a gateway runs standing jobs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lithify.reports.jobs.job_events import JobEvent

LEASE_MS = 30_000
JobListener = Callable[[JobEvent], None]
"""Called with every event, from several threads."""


@dataclass(frozen=True, slots=True)
class StandingOptions:
    """What the processes of a gateway get."""

    gateway: str
    """Its name, for people: two gateways may have the same."""
    place: tuple[str, ...] = ()
    """`--warehouse DIR` or `--catalog NAME`, as the gateway was given it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables beside the gateway's own, such as `LITHIFY_COORDINATION_URL`, which `ps` does not show to all."""
    lease_ms: int = LEASE_MS
    """Without a renewal for this long a gateway loses its jobs to the others."""
    program: tuple[str, ...] = (sys.executable, "-P", "-m", "lithify", "--json")

    def with_variable(self, name: str, value: str) -> StandingOptions:
        """With one more variable."""
        return replace(self, environment={**self.environment, name: value})
