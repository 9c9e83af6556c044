"""What a round records of its phases and tasks while it runs, if this is requested.

    driver: a phase begins, ends          ─┐
    worker: what its task took, with the   ├─► `Profile`
            task's result ─► engine       ─┘

Without a profile nothing is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from lithify.model.names import LogId

SESSION = "session"
"""The phase, within the phase of the key pass, in which a Spark session is found or started."""


@dataclass(frozen=True, slots=True)
class Gauges:
    """What a profile measures by: the time, and the CPU time of the process that asks. Serialised to tasks."""

    epoch_s: Callable[[], float]
    cpu_s: Callable[[], float]


@dataclass(frozen=True, slots=True)
class TaskSpent:
    """What one task took, as measured in its worker, `HOST:PID`. Times in seconds, `began_s` since the epoch.

    kind      part                      records
    range     a range of a log's keys   of the dirty part, compared
    send      a segment                 of the segment, whose keys are sent to the tasks of their ranges
    find      a range of a log's keys   of the dirty part, compared; their keys were sent to it
    rewrite   a rewrite                 written
    mask      a segment that gets one   that the mask hides

    `cpu_s` is of the worker's process; `throttled_s` is the part of `wall_s` that rates made it wait (C40).
    `peak_bytes` is the most memory that the worker has held since it was started, for this task or an earlier one.
    """

    kind: str
    part: int
    worker: str
    began_s: float
    wall_s: float
    cpu_s: float
    throttled_s: float
    peak_bytes: int
    bytes_read: int
    bytes_written: int
    records: int


class Profile(Protocol):
    """Gets what the phases and tasks of a round take, while it runs."""

    @property
    def gauges(self) -> Gauges: ...

    def phase(self, name: str) -> AbstractContextManager[None]:
        """A phase of the round, from its start to its end."""
        ...

    def task(self, log: LogId, spent: TaskSpent) -> None:
        """A task of the round has ended."""
        ...
