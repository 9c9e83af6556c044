"""What is counted and measured, without a word about how: what counts uses a `Meter`, be it served or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lithify.metrics.table import Group


@dataclass(frozen=True, slots=True)
class Change:
    """A counter grows by an amount, or a histogram gets it. `topic` becomes a label if topics are labelled."""

    name: str
    amount: float = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """A gauge has this value. With a `topic` it exists only if that topic is labelled."""

    name: str
    value: float
    topic: str | None = None


Source = Callable[[], Iterable[Sample]]
"""Called at each scrape, by several threads at once; reads memory only."""


class Meter(Protocol):
    """Takes changes and samples; several threads may use it."""

    def now_ms(self) -> int:
        """Epoch ms, as events have it."""
        ...

    def begin(self, *groups: Group) -> None:
        """From now on the metrics of these groups are there, the counters with 0; again it has no effect."""
        ...

    def count(self, changes: Iterable[Change]) -> None:
        """Raises `KeyError` for a metric of a group that has not begun."""
        ...

    def watch(self, source: Source) -> None:
        """Asks `source` at each scrape, until `forget`."""
        ...

    def forget(self, source: Source) -> None: ...


class NoMeter:
    """A `Meter` of a process whose metrics are not served."""

    def now_ms(self) -> int:
        return 0

    def begin(self, *groups: Group) -> None: ...

    def count(self, changes: Iterable[Change]) -> None: ...

    def watch(self, source: Source) -> None: ...

    def forget(self, source: Source) -> None: ...


def seconds_since(begun_ms: int, now_ms: int) -> float:
    """A clock that went back gives 0."""
    return max(0, now_ms - begun_ms) / 1000
