"""Bounds the bytes per second that one task reads or writes (C40).

    rate of the run ──► / concurrent tasks ──► one `Throttle` per task and direction

A reader calls `acquire` before it reads, so it never exceeds the rate. A writer, which has its compressed
bytes only afterwards, calls it after each row group and exceeds it by one row group at most.

The rate may change while a task waits: it waits in slices, a deficit is repaid at the new rate, and a
surplus under the old rate is dropped. So a new rate applies at once, and the total remains below what the
rates allowed.

    at most every LOOK_SECONDS, while the task moves bytes or waits:
        read each rates.json ─► id differs from the noted one? ─► its rates / concurrent tasks
                 it is shared by all cleaners? ─► a bound of these rates / cleaners / concurrent tasks, in any case

Each task reads the documents itself. If that fails, the rates remain as they are, so the round neither stops
nor becomes faster.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from lithify.columnar.files.access import FileAccess
from lithify.columnar.files.looks import read_sealed
from lithify.model.settings.rates import Rates, RatesDocument, RatesNote, cleaners_from_json

BURST_SECONDS = 1.0
"""Size of the bucket: idle time that may be made up for later."""

SLICE_SECONDS = 1.0
"""Seconds of the longest sleep before the rate is read again."""

LOOK_SECONDS = 2.0
"""Minimum time between two reads of the documents by one task."""

_PAID_SECONDS = 1e-9
"""A deficit worth less time than this is carried over: no sleep is that short."""


class Throttle:
    """A token bucket. `rate` gives bytes per second, None for no limit; `clock` is monotonic, in seconds.

    Threads that acquire at once wait one after the other.
    """

    def __init__(
        self, rate: Callable[[], float | None], clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._turn = Lock()
        self._filled_at = clock()
        self._rate_bytes: float | None = None
        self._level_bytes = 0.0  # negative: a deficit; starts empty, so a task does not start with a burst

    def acquire(self, count: int) -> None:
        """Takes `count` bytes from the bucket and sleeps until the deficit is repaid."""
        with self._turn:
            self._fill()
            self._level_bytes -= count
            while self._rate_bytes is not None and self._level_bytes < -self._rate_bytes * _PAID_SECONDS:
                self._sleep(min(SLICE_SECONDS, -self._level_bytes / self._rate_bytes))
                self._fill()
            if self._rate_bytes is None:
                self._level_bytes = 0.0  # without a limit there is neither deficit nor surplus

    def _fill(self) -> None:
        now = self._clock()
        if self._rate_bytes is not None:
            came_in = (now - self._filled_at) * self._rate_bytes
            self._level_bytes = min(self._level_bytes + came_in, self._rate_bytes * BURST_SECONDS)
        self._filled_at = now
        rate_bytes = self._rate()
        if rate_bytes != self._rate_bytes:
            self._level_bytes = min(self._level_bytes, 0.0)
            self._rate_bytes = rate_bytes


def unthrottled(count: int) -> None:
    """Does nothing: `Throttle.acquire` of a run without a limit."""


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
        self._shared = Rates()
        self._cleaners = 1

    def read(self) -> float | None:
        """This task's share of the run's read rate, None for no limit."""
        self._refresh()
        return self._share(self._rates.read_rate_bytes, self._shared.read_rate_bytes)

    def write(self) -> float | None:
        """This task's share of the run's write rate, None for no limit."""
        self._refresh()
        return self._share(self._rates.write_rate_bytes, self._shared.write_rate_bytes)

    def _share(self, rate_bytes: int | None, shared_bytes: int | None) -> float | None:
        of_run = [] if rate_bytes is None else [float(rate_bytes)]
        of_cleaner = [] if shared_bytes is None else [shared_bytes / self._cleaners]
        least = min(of_run + of_cleaner, default=None)
        return None if least is None else least / max(1, self._tasks)

    def _refresh(self) -> None:
        if not self._notes:
            return
        now = self._clock()
        if self._refreshed_at is not None and now - self._refreshed_at < LOOK_SECONDS:
            return
        self._refreshed_at = now
        for note in self._notes:
            with suppress(Exception):  # after any error the rates stay as they are
                document = read_rates(self._access, note.path)
                if document.id == note.id:
                    continue
                if note.cleaners_path is not None:
                    self._cleaners = read_cleaners(self._access, note.cleaners_path) if document.shared else 1
                    self._shared = document.rates if document.shared else Rates()
                self._rates = document.rates


def read_rates(access: FileAccess, path: str) -> RatesDocument:
    """The document at `path`. Raises `OSError`, `DamagedError` or `ValueError`."""
    return RatesDocument.from_json(read_sealed(access, path))


def read_cleaners(access: FileAccess, path: str) -> int:
    """The number of running cleaners, as they have stored it: one without a document.

    Raises `OSError`, `DamagedError` or `ValueError`.
    """
    try:
        return cleaners_from_json(read_sealed(access, path))
    except FileNotFoundError:
        return 1
