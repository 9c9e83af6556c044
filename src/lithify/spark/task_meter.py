"""Measures tasks in their workers, in rounds that are profiled.

One meter for one Spark partition, whose tasks run one after the other. Without gauges it measures nothing.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
from collections.abc import Callable
from threading import Lock

from lithify.ports.profile import Gauges, TaskSpent

_RSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024
"""Of `ru_maxrss`."""


class TaskMeter:
    """Measures from `begin` to `spent`; `sleep` is the sleep function of throttles."""

    def __init__(self, gauges: Gauges | None, sleep: Callable[[float], None]) -> None:
        self._gauges = gauges
        self._sleep = sleep
        self._changing = Lock()
        self._sleepers, self._since_s = 0, 0.0
        self._began_s = self._cpu_before_s = self._throttled_s = 0.0

    def sleep(self, seconds: float) -> None:
        """Sleeps, and counts that as waiting for a rate.

        Once where one thread waits for the read rate while another waits for the write rate.
        """
        if self._gauges is None:
            self._sleep(seconds)
            return
        self._change_sleepers(self._gauges, 1)
        try:
            self._sleep(seconds)
        finally:
            self._change_sleepers(self._gauges, -1)

    def _change_sleepers(self, gauges: Gauges, by: int) -> None:
        with self._changing:
            now_s = gauges.epoch_s()
            if self._sleepers:
                self._throttled_s += now_s - self._since_s
            self._since_s = now_s
            self._sleepers += by

    def begin(self) -> None:
        """A task begins."""
        if self._gauges is not None:
            self._began_s, self._cpu_before_s, self._throttled_s = self._gauges.epoch_s(), self._gauges.cpu_s(), 0.0

    def spent(
        self, kind: str, part: int, *, bytes_read: int = 0, bytes_written: int = 0, records: int = 0
    ) -> tuple[TaskSpent, ...]:
        """What the task took that began last; nothing where the round is not profiled."""
        if self._gauges is None:
            return ()
        return (
            TaskSpent(
                kind=kind,
                part=part,
                worker=f"{socket.gethostname()}:{os.getpid()}",
                began_s=self._began_s,
                wall_s=self._gauges.epoch_s() - self._began_s,
                cpu_s=self._gauges.cpu_s() - self._cpu_before_s,
                throttled_s=self._throttled_s,
                peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT_BYTES,
                bytes_read=bytes_read,
                bytes_written=bytes_written,
                records=records,
            ),
        )
