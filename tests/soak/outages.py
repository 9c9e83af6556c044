"""Outages under everything: the catalog's database is killed and restarted, the stores of files do not answer.

    PostgreSQL    killed as by a crash, and started again on the same data some seconds later
    S3            stopped (SIGSTOP) for some seconds: requests hang
    replica       its folder, with catalog and files, is moved away and back

Programs that end for it are started again, as a supervisor does.
Feeders only append while one is expected or happens, since the outcome of an append can be told by the log ends.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

from soak.programs import Program

LASTS_S = 5.0
ROUGH_S = 5.0
"""So much longer connections that were lost are found out."""
FOUND_OUT_MS = 120_000
"""What broke in an outage may be told so much later: after retries, or at the end of a round."""
CALM_WITHIN_S = 120.0


@dataclass(frozen=True, slots=True)
class Outage:
    """One that has happened. Times are epoch ms."""

    what: str
    says: re.Pattern[str]
    begun_ms: int
    ended_ms: int

    def explains(self, time_ms: int, error: str) -> bool:
        """Whether it may be why something failed at that time with that error."""
        return self.begun_ms <= time_ms <= self.ended_ms + FOUND_OUT_MS and self.says.search(error) is not None


@dataclass(frozen=True, slots=True)
class Breakable:
    """What can be made unusable and usable again."""

    what: str
    says: str
    """What errors that come of it match, as a regular expression."""
    breaks: Callable[[], None]
    mends: Callable[[], None]


@dataclass(slots=True)
class Outages:
    """A `soak.part.Part`: one outage after the other, in turns, at regular times of the feeding."""

    breakables: list[Breakable]
    every_s: float
    name: str = "outages"
    happened: list[Outage] = field(default_factory=list)
    restarts: Counter[str] = field(default_factory=Counter)
    _rough_until_s: float = 0.0
    _calm_turns: int = 0
    _changed: Condition = field(default_factory=Condition)
    _begun_s: float = field(default_factory=time.monotonic)
    _is_feeding: bool = False

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """A turn of a feeder. Where it is true, no outage begins within it."""
        with self._changed:
            calm = time.monotonic() >= self._rough_until_s
            self._calm_turns += calm
        try:
            yield calm
        finally:
            with self._changed:
                self._calm_turns -= calm
                self._changed.notify_all()

    def explain(self, time_ms: int, error: str) -> str | None:
        """The outage that may be why something failed at that time with that error."""
        return next((f"{outage.what} was out" for outage in self.happened if outage.explains(time_ms, error)), None)

    def restart(self, program: Program) -> str | None:
        """Starts a program again that has ended by itself, as a supervisor does; a finding, unless an outage is why."""
        said = program.said()
        program.start()
        if self.explain(time.time_ns() // 10**6, said) is None:
            return f"{program.name} ended by itself: {said}"
        self.restarts[program.name] += 1
        return None

    def start(self) -> None:
        self._begun_s, self._is_feeding = time.monotonic(), True

    def tick(self) -> None:
        due_s = self._begun_s + (len(self.happened) + 1) * self.every_s
        if self._is_feeding and time.monotonic() >= due_s:
            self._strike(self.breakables[len(self.happened) % len(self.breakables)])

    def _strike(self, victim: Breakable) -> None:
        with self._changed:
            self._rough_until_s = float("inf")
            calm = self._changed.wait_for(lambda: self._calm_turns == 0, CALM_WITHIN_S)
        assert calm, "a turn of a feeder does not end"
        begun_ms = time.time_ns() // 10**6
        try:
            victim.breaks()
            time.sleep(LASTS_S)
        finally:
            victim.mends()
        self.happened.append(Outage(victim.what, re.compile(victim.says), begun_ms, time.time_ns() // 10**6))
        self._rough_until_s = time.monotonic() + ROUGH_S

    def feeding_ended(self) -> None:
        self._is_feeding = False

    def unsettled(self) -> dict[str, str]:
        return {}

    def stop(self) -> None:
        """Everything has been mended."""

    def findings(self) -> list[str]:
        return []

    def rows(self) -> list[tuple[str, object]]:
        told = (f"{o.what} for {(o.ended_ms - o.begun_ms) / 1000:.1f} s" for o in self.happened)
        restarts = ", ".join(f"{name} {number}" for name, number in sorted(self.restarts.items()))
        return [("outages", ", ".join(told) or "none"), ("  restarts", restarts or "none")]

    def to_json(self) -> dict[str, Any]:
        happened = [{"what": o.what, "ms": o.ended_ms - o.begun_ms} for o in self.happened]
        return {"happened": happened, "restarts": dict(self.restarts)}

    def end(self) -> None:
        """Nothing of it runs."""
