"""How long each phase of a run takes (C42)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from lithify.ports import Clock


@dataclass(slots=True)
class Stopwatch:
    """In ms, summed over attempts."""

    clock: Clock
    started_ms: int = 0
    phases_ms: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.started_ms = self.clock.now_ms()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        begun_ms = self.clock.now_ms()
        try:
            yield
        finally:
            self.phases_ms[name] = self.phases_ms.get(name, 0) + self.clock.now_ms() - begun_ms

    @property
    def duration_ms(self) -> int:
        """Since it was started."""
        return self.clock.now_ms() - self.started_ms
