"""How long each phase of a run takes (C42)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from lithify.ports.clock import Clock

if TYPE_CHECKING:
    from lithify.ports.profile import Profile


@dataclass(slots=True)
class _Phase:
    since_ms: int
    threads: int = 0
    spent_ms: int = 0
    left: bool = False
    """Whether it was ever left."""


@dataclass(slots=True)
class Stopwatch:
    """In ms, summed over attempts. Time that several threads spend in a phase together counts once."""

    clock: Clock
    profile: Profile | None = None
    started_ms: int = 0
    _phases: dict[str, _Phase] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.started_ms = self.clock.now_ms()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self._count(name, 1)
        try:
            with nullcontext() if self.profile is None else self.profile.phase(name):
                yield
        finally:
            self._count(name, -1)

    @property
    def phases_ms(self) -> Mapping[str, int]:
        """The time of each phase, up to the last time that it was left."""
        with self._lock:
            return {name: phase.spent_ms for name, phase in self._phases.items() if phase.left}

    def _count(self, name: str, threads: int) -> None:
        now_ms = self.clock.now_ms()
        with self._lock:
            phase = self._phases.setdefault(name, _Phase(now_ms))
            if phase.threads:
                phase.spent_ms += now_ms - phase.since_ms
            phase.since_ms = now_ms
            phase.threads += threads
            phase.left |= threads < 0

    @property
    def duration_ms(self) -> int:
        """Since it was started."""
        return self.clock.now_ms() - self.started_ms
