"""The rates that one task keeps to: its share of the run's own, or of a document's that came later (C40).

    every LOOK_SECONDS, when the task moves bytes or waits to:
        open each rates.json ─► another id than the one noted? ─► its rates / tasks at once

A task looks for itself, wherever it runs. A look that fails changes nothing: no round stops, and
none goes faster, because a small file could not be read.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from lithify.columnar.files.access import FileAccess
from lithify.columnar.files.sealed import unsealed
from lithify.model.settings.rates import Rates, RatesDocument, RatesNote

LOOK_SECONDS = 2.0
"""The least time between two looks of one task."""


@dataclass(frozen=True, slots=True)
class TaskRates:
    """What each of `tasks` tasks that run at once has to know; a small value that travels to it."""

    rates: Rates
    tasks: int
    notes: tuple[RatesNote, ...]


class FollowedRates:
    """The rates in force for one task, in bytes per second. `clock` is monotonic, in seconds."""

    def __init__(self, given: TaskRates, access: FileAccess, clock: Callable[[], float]) -> None:
        self._rates = given.rates
        self._tasks = given.tasks
        self._notes = given.notes
        self._access = access
        self._clock = clock
        self._looked_at: float | None = None

    def read(self) -> float | None:
        """The share of this task in what the run may read."""
        self._look()
        return self._share(self._rates.read_rate_bytes)

    def write(self) -> float | None:
        """The share of this task in what the run may write."""
        self._look()
        return self._share(self._rates.write_rate_bytes)

    def _share(self, rate_bytes: int | None) -> float | None:
        return None if rate_bytes is None else rate_bytes / max(1, self._tasks)

    def _look(self) -> None:
        if not self._notes:
            return
        now = self._clock()
        if self._looked_at is not None and now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        for note in self._notes:
            with suppress(Exception):  # on any error of the store the rates stay as they are
                found = read_rates(self._access, note.path)
                if found.id != note.id:
                    self._rates = found.rates


def read_rates(access: FileAccess, path: str) -> RatesDocument:
    """The document at `path`. Raises `OSError`, or `DamagedError` or `ValueError` where it is not one."""
    return RatesDocument.from_json(unsealed(path, access.read(path)))
