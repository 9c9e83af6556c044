"""How many requests are worked on at once, and how many wait for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lithify.gateway.access.refusals import Refusal, busy


class BusyRefusalError(Exception):
    """No turn was free in time."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.error.message)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """`running` at once, `waiting` for a turn for at most `wait_s`."""

    running: int
    waiting: int
    wait_s: float


class Turns:
    """Turns of one kind of requests, first come, first served. For one event loop."""

    def __init__(self, limits: TurnLimits, what: str) -> None:
        self._limits, self._what = limits, what
        self._free = asyncio.Semaphore(limits.running)
        self._waiting = 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for a turn, and holds it. Raises `BusyRefusalError`."""
        if self._free.locked() and self._waiting >= self._limits.waiting:
            raise BusyRefusalError(busy(f"{self._limits.running} {self._what} are under way, and too many wait"))
        self._waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait_s):
                await self._free.acquire()
        except TimeoutError:
            waited = f"waited for {self._limits.wait_s:g} s"
            raise BusyRefusalError(busy(f"{self._limits.running} {self._what} are under way: {waited}")) from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._free.release()
