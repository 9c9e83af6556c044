"""The options of a daemon that keeps replicas up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lithify.reports.replicas.replica_events import ReplicaEvent

EventListener = Callable[[ReplicaEvent], None]
"""Called with every event of a daemon, from several threads, one at a time."""

INTERVAL_MS = 2_000
"""Between two checks of the source."""

LEASE_MS = 30_000
"""Without a renewal for this long a daemon loses its copies to the others."""

THREADS = 4
"""Topics that are copied to one target at the same time."""


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """`daemon_id` is unique among running daemons."""

    daemon_id: str
    threads: int = THREADS
    interval_ms: int = INTERVAL_MS
    lease_ms: int = LEASE_MS
