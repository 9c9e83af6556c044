"""Runs the threads of a daemon, watches that its looks make progress, and ends it in order (C50).

    main      waits for the end, or for a signal ──► watchdog: a step of a look, or the process ends by itself
    thread    step, step, step ...                  a defect is reported, and ends no thread

After a request to stop no new step begins. Running work has `FINISH_S` to complete and then gets a request to stop; the
end of the process ends threads that still hang after `GIVE_UP_S`: what is not committed has changed nothing. The
process ends by itself, for its own supervisor to restart it, if its looks make no progress or its events cannot be
written.

    look   ├─ topic ─ topic ─ topic ─┤   ├─ topic ─ ...                 ← every topic is a step
    ticks  . . . . . . . . . . . . . . . . . . . . . . . .
                                                    ├─ limit ─┤  without a step: it stalls

The duration of a look depends on the number of topics, so the watchdog counts steps, not completed looks. A look that
fails as a whole (an unreachable catalog) is not a step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread

from lithify.daemons.stop import Stop
from lithify.errors import LithifyError, UnusableEnvironmentError
from lithify.errors.defects import as_lithify_error
from lithify.model.settings.units import format_duration

TICK_S = 0.1
FINISH_S = 4.0
GIVE_UP_S = 4.0
FAREWELL_S = 1.0
"""For the release of the leases, the last notes and the last event."""
HEARTBEATS_PER_LEASE = 6
AFTER_A_DEFECT_S = 5.0
"""How long a thread waits after an unexpected error."""
INTERVALS = 40
LEAST_MS = 600_000
TICK_MS = 1_000
"""The most that counts between two ticks: in the rest this process was suspended, and its looks too."""

Step = Callable[[], bool | None]
"""A step of a thread; without true it is the last one."""


@dataclass(slots=True)
class Watchdog:
    """Gets the number of steps so far at every tick. For one thread."""

    interval_ms: int
    _steps: int = -1
    _still_ms: int = 0
    _ticked_ms: int | None = None

    @property
    def limit_ms(self) -> int:
        return max(INTERVALS * self.interval_ms, LEAST_MS)

    def stalls(self, steps: int, now_ms: int) -> bool:
        """Whether there was no step for `limit_ms`; `now_ms` is of a monotonic clock."""
        since_ms = 0 if self._ticked_ms is None else min(now_ms - self._ticked_ms, TICK_MS)
        self._ticked_ms = now_ms
        self._still_ms = self._still_ms + since_ms if steps == self._steps else 0
        self._steps = steps
        return self._still_ms >= self.limit_ms


@dataclass(frozen=True, slots=True)
class Looks:
    """What main watches: `of` what the looks are, how often they come, and what they have done so far."""

    of: str
    interval_ms: int
    steps: Callable[[], int]
    last_error: Callable[[], str]

    def stalled(self, limit_ms: int) -> LithifyError:
        reason = f": {error}" if (error := self.last_error()) else ""
        return UnusableEnvironmentError(
            f"no check of {self.of} has completed for {format_duration(limit_ms)}{reason}; this process ends, for its "
            "supervisor to start another"
        )


@dataclass(frozen=True, slots=True)
class Supervisor:
    """Of one process of `daemon`, as its defects name it. `now_ms` is of a monotonic clock."""

    daemon: str
    stop: Stop
    now_ms: Callable[[], int]
    tell_defect: Callable[[LithifyError], None]

    def start(self, step: Step, ends: Event) -> Thread:
        """A thread that repeats a step until `ends` is set."""
        return started(partial(self._repeat, step, ends))

    def watch(self, threads: Collection[Thread], looks: Looks | None) -> None:
        """Returns once all these threads have ended, or the daemon is to stop, as it is where its looks stall."""
        watchdog = None if looks is None else Watchdog(looks.interval_ms)
        while any(thread.is_alive() for thread in threads) and not self.stop.asked.wait(TICK_S):
            if looks is not None and watchdog is not None and watchdog.stalls(looks.steps(), self.now_ms()):
                self.stop.fail(looks.stalled(watchdog.limit_ms))

    def end(self, ended_within: Callable[[float], bool], *farewells: Callable[[], None]) -> bool:
        """Ends work that is running, then bids each farewell, side by side; returns whether all have ended."""
        ended = ended_within(FINISH_S)
        if not ended:
            self.stop.gives_up.set()
            ended = ended_within(GIVE_UP_S)
        self.stop.gives_up.set()
        return joined([started(farewell) for farewell in farewells], FAREWELL_S) and ended

    def _repeat(self, step: Step, ends: Event) -> None:
        goes_on: bool | None = True
        try:
            while goes_on and not ends.is_set():
                try:
                    goes_on = step()
                except Exception as error:
                    self.tell_defect(as_lithify_error(error, f"a step of {self.daemon}"))
                    ends.wait(AFTER_A_DEFECT_S)
        except Exception as error:
            self.stop.fail(as_lithify_error(error, "its events cannot be written"))


def started(work: Callable[[], object]) -> Thread:
    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread


def joined(threads: Collection[Thread], timeout_s: float) -> bool:
    """Waits for all of them together; returns whether all have ended."""
    ended = Event()

    def join() -> None:
        for thread in threads:
            thread.join()
        ended.set()

    started(join)
    return ended.wait(timeout_s)
