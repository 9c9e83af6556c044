"""The rates of one task: its share of those of the run, or of those in a newer rates document (C40).

    at most every LOOK_SECONDS, while the task moves bytes or waits:
        read each rates.json ─► id differs from the noted one? ─► its rates / concurrent tasks

Each task reads the documents itself. If that fails, the rates stay as they are, so the round neither stops
nor goes faster.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from lithify.columnar.files.access import FileAccess
from lithify.columnar.files.sealed import unsealed
from lithify.model.settings.rates import Rates, RatesDocument, RatesNote

LOOK_SECONDS = 2.0
"""Minimum time between two reads of the documents by one task."""


@dataclass(frozen=True, slots=True)
class TaskRates:
    """The rates of a run and the number of tasks that share them; serialised to each task."""

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
        self._refreshed_at: float | None = None

    def read(self) -> float | None:
        """This task's share of the run's read rate, None for no limit."""
        self._refresh()
        return self._share(self._rates.read_rate_bytes)

    def write(self) -> float | None:
        """This task's share of the run's write rate, None for no limit."""
        self._refresh()
        return self._share(self._rates.write_rate_bytes)

    def _share(self, rate_bytes: int | None) -> float | None:
        return None if rate_bytes is None else rate_bytes / max(1, self._tasks)

    def _refresh(self) -> None:
        if not self._notes:
            return
        now = self._clock()
        if self._refreshed_at is not None and now - self._refreshed_at < LOOK_SECONDS:
            return
        self._refreshed_at = now
        for note in self._notes:
            with suppress(Exception):  # after any error the rates stay as they are
                found = read_rates(self._access, note.path)
                if found.id != note.id:
                    self._rates = found.rates


def read_rates(access: FileAccess, path: str) -> RatesDocument:
    """The document at `path`. Raises `OSError`, `DamagedError` or `ValueError`."""
    return RatesDocument.from_json(unsealed(path, access.read(path)))
