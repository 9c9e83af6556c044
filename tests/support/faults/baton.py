"""Threads of which one runs at a time, from port call to port call, in an order that a test chooses.

    stretches   a 5, b 3, a …     a makes five calls, then b three, then a runs to its end, then b does

Right before its first call after a stretch a thread waits, as a process does that is paused there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ENOUGH_S = 60
TO_THE_END = 10_000


class Baton:
    """Which thread may go on, by name. At the end of the stretches the first one that has not ended runs to its end."""

    def __init__(self, stretches: Sequence[tuple[str, int]]) -> None:
        self._left = [*stretches]
        self._running: list[str] = []
        self._changed = threading.Condition()
        self.calls: list[tuple[str, str]] = []

    def run(self, works: Mapping[str, Callable[[], object]]) -> None:
        """Does all the works, each in a thread of its own, until they have ended."""
        self._running = [*works]
        threads = [threading.Thread(target=self._work, args=one) for one in works.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(ENOUGH_S)
            assert not thread.is_alive()

    def _work(self, name: str, work: Callable[[], object]) -> None:
        try:
            work()
        finally:
            with self._changed:
                self._running.remove(name)
                self._changed.notify_all()

    def call(self, who: str, name: str, action: Callable[[], Any]) -> Any:
        with self._changed:
            assert self._changed.wait_for(lambda: self._turn() == who, ENOUGH_S)
            self.calls.append((who, name))
        try:
            return action()
        finally:
            with self._changed:
                if self._left:
                    turn, left = self._left[0]
                    self._left[0] = turn, left - 1
                self._changed.notify_all()

    def _turn(self) -> str:
        while self._left and (self._left[0][1] <= 0 or self._left[0][0] not in self._running):
            self._left.pop(0)
        return self._left[0][0] if self._left else self._running[0]


@dataclass(frozen=True, slots=True)
class Held:
    """The port calls of one thread."""

    baton: Baton
    who: str

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        return self.baton.call(self.who, name, action)
