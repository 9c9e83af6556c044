"""Profiles of rounds: what phases and tasks took, kept while the round runs and saved to a folder after it.

DIR/profile.jsonl    an object a line: the round, its phases, its tasks; for jq and SQL
DIR/trace.json       the same in the format of trace viewers: phases on one row, each worker's tasks on another
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from lithify.errors import RefusedError
from lithify.model.names import LogId
from lithify.ports.profile import Gauges, TaskSpent

PROFILE = "profile.jsonl"
TRACE = "trace.json"
MOST_TASKS = 100_000
"""Tasks of a round that a profile keeps, some 60 MB; it counts the others."""


@dataclass(frozen=True, slots=True)
class PhaseSpent:
    """A phase of a round in the driver's Python process. Times in seconds, `began_s` since the epoch."""

    name: str
    began_s: float
    wall_s: float
    cpu_s: float
    peak_bytes: int


@dataclass(slots=True)
class RoundProfile:
    """A profile of one round; see `ports.profile.Profile`. Give it to `compact`, then `save` it."""

    most_tasks: int = MOST_TASKS
    gauges: Gauges = Gauges(time.time, time.process_time)
    began_s: float = field(default_factory=time.time)
    phases: list[PhaseSpent] = field(default_factory=list)
    tasks: list[tuple[LogId, TaskSpent]] = field(default_factory=list)
    left_out: int = 0
    """Tasks beyond `most_tasks`."""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measures a phase, also one that fails."""
        began_s, cpu_before_s = self.gauges.epoch_s(), self.gauges.cpu_s()
        try:
            yield
        finally:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            peak_bytes = peak if sys.platform == "darwin" else peak * 1024
            wall_s, cpu_s = self.gauges.epoch_s() - began_s, self.gauges.cpu_s() - cpu_before_s
            self.phases.append(PhaseSpent(name, began_s, wall_s, cpu_s, peak_bytes))

    def task(self, log: LogId, spent: TaskSpent) -> None:
        """Keeps what a task took."""
        if len(self.tasks) < self.most_tasks:
            self.tasks.append((log, spent))
        else:
            self.left_out += 1

    def save(self, folder: str | PathLike[str]) -> None:
        """Writes both files, row by row. Raises `OSError`; what it had written by then is deleted."""
        files = {Path(folder) / PROFILE: self._lines(), Path(folder) / TRACE: self._trace()}
        try:
            for path, rows in files.items():
                with path.open("w", encoding="utf-8") as file:
                    file.writelines(rows)
        except BaseException:  # also an interrupt, which would leave half a document
            for path in files:
                with suppress(OSError):
                    path.unlink()
            raise

    def _lines(self) -> Iterator[str]:
        begun = {"began_s": round(self.began_s, 6)}
        yield _line({"of": "round", **begun, "tasks": len(self.tasks), "tasks_left_out": self.left_out})
        for phase in self.phases:
            yield _line({"of": "phase", **_counted(phase)})
        for log, spent in self.tasks:
            yield _line({"of": "task", "log": str(log), **_counted(spent)})

    def _trace(self) -> Iterator[str]:
        """Trace Event Format: complete events, in microseconds since the round began; the driver is process 0."""
        yield f'{{"displayTimeUnit": "ms", "traceEvents": [\n{json.dumps(_named(0, "round"))}'
        for event in self._events():
            yield f",\n{json.dumps(event)}"
        yield "\n]}\n"

    def _events(self) -> Iterator[dict[str, Any]]:
        hosts = sorted({spent.worker.rpartition(":")[0] for _, spent in self.tasks})
        numbers = {host: number for number, host in enumerate(hosts, 1)}
        for host, number in numbers.items():
            yield _named(number, f"workers on {host}")
        for phase in self.phases:
            yield self._event((0, 0), phase.name, phase)
        for log, spent in self.tasks:
            host, _, process = spent.worker.rpartition(":")
            yield self._event((numbers[host], int(process)), f"{spent.kind} {spent.part} of {log}", spent)

    def _event(self, place: tuple[int, int], name: str, spent: PhaseSpent | TaskSpent) -> dict[str, Any]:
        begun_us, took_us = round((spent.began_s - self.began_s) * 1e6), round(spent.wall_s * 1e6)
        where = {"pid": place[0], "tid": place[1]}
        return {"name": name, "ph": "X", **where, "ts": begun_us, "dur": took_us, "args": _counted(spent)}


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row) + "\n"


def _counted(spent: PhaseSpent | TaskSpent) -> dict[str, Any]:
    """Its fields, times to the microsecond."""
    return {name: round(value, 6) if isinstance(value, float) else value for name, value in asdict(spent).items()}


def _named(process: int, name: str) -> dict[str, Any]:
    return {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "args": {"name": name}}


def profile_folder(folder: str | PathLike[str]) -> Path:
    """A folder for a profile, created if it is not there. Raises `RefusedError` unless it is empty and writable."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        if next(path.iterdir(), None) is not None:
            raise RefusedError(
                f"{path}: the folder is not empty", hint="choose a new or an empty folder for the profile"
            )
        probe = path / TRACE
        probe.write_text("{}")
        probe.unlink()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "this name is not valid for a folder"
        raise RefusedError(f"{path}: the profile cannot be written there: {why}") from None
    return path
