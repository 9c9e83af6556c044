"""A service that is paused at one of its port calls while another one runs to its end.

A suspended laptop, a frozen virtual machine, a long garbage collection: time goes on, past every
grace period and lease, others work, and then the first one goes on as if nothing had happened.

    one     load ─► write ─┤ paused ├─► commit            at each of its port calls in turn
    other                    load … commit                a whole service, days later

What comes of it must be what one of the two orders comes to, or the other alone if the one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lithify.errors import LithifyError
from lithify.ports.store import Warehouse
from support.fake_clock import FakeClock
from support.faults.port_calls import NEVER_STRUCK, call_name

LONG_MS = 10 * 86_400_000
"""Longer than every grace period, lease and retention of the topics that these tests make."""

Verb = Callable[[Warehouse], object]


@dataclass(slots=True)
class Freezer:
    """Counts port calls; right before the `at`-th one, counted from 1, `meanwhile` happens."""

    at: int
    meanwhile: Callable[[], object]
    calls: list[str] = field(default_factory=list)

    @property
    def reached(self) -> bool:
        return len(self.calls) >= self.at

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        self.calls.append(name)
        if len(self.calls) == self.at:
            self.meanwhile()
        return action()


class FreezingPort:
    """Stands in for a port and passes every call through the freezer; iterators are run to their end."""

    def __init__(self, real: Any, freezer: Freezer) -> None:
        self._real = real
        self._freezer = freezer

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found) or name in NEVER_STRUCK:
            return found

        def through(*args: Any, **kwargs: Any) -> Any:
            answer = self._freezer.call(call_name(name, args), lambda: found(*args, **kwargs))
            return iter(list(answer)) if isinstance(answer, Iterator) else answer

        return through


def freezing(warehouse: Warehouse, freezer: Freezer) -> Warehouse:
    """The same warehouse behind ports at which the freezer can strike."""
    return Warehouse(FreezingPort(warehouse.store, freezer), FreezingPort(warehouse.files, freezer), warehouse.clock)


class LateClock(FakeClock):
    """A clock that was read `early` times before `passed_ms` went by."""

    def __init__(self, real: FakeClock, early: int, passed_ms: int) -> None:
        super().__init__(real.now_ms())
        self._real, self.early, self.reads, self._passed_ms = real, early, 0, passed_ms

    def now_ms(self) -> int:
        self.reads += 1
        return self._real.now_ms() - (self._passed_ms if self.reads <= self.early else 0)

    def new_id(self) -> str:
        return self._real.new_id()

    def sleep(self, seconds: float) -> None:
        """It does not wait."""


def outcome(verb: Verb, warehouse: Warehouse) -> LithifyError | None:
    """The result of a service: an error, or success."""
    try:
        verb(warehouse)
    except LithifyError as error:
        return error
    return None
