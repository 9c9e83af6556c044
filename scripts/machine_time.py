"""What the processors of this machine have done, for all programs together, and how they take turns: on Linux alone."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_COUNTS = Path("/proc/stat")
_PER_S = 100
"""Linux counts for programs in hundredths of a second."""


@dataclass(frozen=True, slots=True)
class MachineTime:
    """Seconds of all processors since the machine was started. Where nothing counts them all are 0."""

    worked: float = 0.0
    stolen: float = 0.0
    """For other machines on the same hardware."""
    in_all: float = 0.0

    @classmethod
    def now(cls) -> MachineTime:
        if not _COUNTS.exists():
            return cls()
        user, nice, system, idle, disk, hard, soft, stolen = map(int, _COUNTS.read_text().split(maxsplit=9)[1:9])
        worked = user + nice + system + hard + soft
        return cls(worked / _PER_S, stolen / _PER_S, (worked + idle + disk + stolen) / _PER_S)

    def since(self, begun: MachineTime) -> str:
        """How much of the time between was work, as text."""
        worked, stolen, in_all = self.worked - begun.worked, self.stolen - begun.stolen, self.in_all - begun.in_all
        return f"the machine worked for {worked:.0f} of {in_all:.0f} s, {stolen:.0f} were stolen"


def switch_less() -> None:
    """Lets a program that wakes up wait for its turn: this one, and all that it starts from now on.

    Nobody at a terminal waits for them. Four test runs at once on two cores lost them 35,000 times instead of 56,000,
    and each time the caches have to be filled again.
    """
    if hasattr(os, "SCHED_BATCH"):
        with suppress(OSError):  # some sandboxes have one kind of turns only
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
