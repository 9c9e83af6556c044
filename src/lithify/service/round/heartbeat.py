"""Heartbeats of a run that may take longer than `sweep.grace.ms` (C45).

No version names the files that a run has written and not committed yet. While it runs, it rewrites a small
file in the folder of each of its topics at intervals, and `sweep` does not delete the run's files.
A suspended run writes no heartbeat: its files may be swept, and its commit is then refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from lithify.errors import LithifyError
from lithify.lifecycle.sweeping import HEARTBEATS_PER_GRACE
from lithify.model.log import TopicState
from lithify.ports.engine import Progress
from lithify.ports.store import Warehouse
from lithify.service.documents import put_heartbeat


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Follows the progress of a run; the engine reports that several times a second."""

    warehouse: Warehouse
    run_id: str
    topics: Sequence[TopicState]
    progress: Progress

    def following(self) -> Progress:
        """`progress`, with a heartbeat in each topic whenever one is due."""
        clock = self.warehouse.clock
        last_ms = {topic.name: clock.monotonic_ms() for topic in self.topics}
        lock = Lock()

        def report(phase: str, done: int, total: int) -> None:
            self.progress(phase, done, total)
            for topic in self.topics:
                with lock:
                    now_ms = clock.monotonic_ms()
                    if now_ms - last_ms[topic.name] < topic.settings.sweep_grace_ms / HEARTBEATS_PER_GRACE:
                        continue
                    last_ms[topic.name] = now_ms
                with suppress(LithifyError):  # the next one may succeed; if none does, the commit is refused
                    put_heartbeat(self.warehouse.store, topic, self.run_id)

        return report
