"""Heartbeats of runs whose files no version names yet, so that `sweep` leaves them alone (C45).

A suspended run has none, so its files may be swept, and its commit is then refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from threading import Lock

from lithify.errors import LithifyError
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.rules.lifecycle.sweeping import HEARTBEATS_PER_GRACE
from lithify.service.documents import put_heartbeat


class Heartbeats:
    """Of runs in topics of a warehouse; several threads may call."""

    def __init__(self, warehouse: Warehouse, runs: Iterable[tuple[TopicState, str]]) -> None:
        self._warehouse = warehouse
        self._lock = Lock()
        now_ms = warehouse.clock.monotonic_ms()
        self._runs = tuple(runs)
        self._last_ms = [now_ms] * len(self._runs)

    def beat(self) -> None:
        """Stores every heartbeat that is due; it may be called several times a second."""
        for number, (topic, run_id) in enumerate(self._runs):
            with self._lock:
                now_ms = self._warehouse.clock.monotonic_ms()
                if now_ms - self._last_ms[number] < topic.settings.sweep_grace_ms / HEARTBEATS_PER_GRACE:
                    continue
                self._last_ms[number] = now_ms
            with suppress(LithifyError):  # the next one may succeed; if none does, the commit is refused
                put_heartbeat(self._warehouse.store, topic, run_id)
