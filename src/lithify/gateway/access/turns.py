"""How many requests are worked on at once, and how many wait for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
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
    """Turns of one kind of requests, first come, first served. For one event loop.

    One token gets three in four of them at most, running and waiting: nobody keeps all others away.
    """

    def __init__(self, limits: TurnLimits, what: str) -> None:
        self._limits, self._what = limits, what
        self._all = _Line(f"{limits.running} {what}", limits.running, limits.waiting)
        self._of_tokens: dict[str, _Line] = {}
        """Of the tokens that have requests here now."""

    @asynccontextmanager
    async def turn(self, token: str | None = None) -> AsyncIterator[None]:
        """Waits for a turn, and holds it; `token` is the id of the token that asks. Raises `BusyRefusalError`."""
        async with AsyncExitStack() as held:
            lines = [self._all] if token is None else [held.enter_context(self._of_token(token)), self._all]
            line = self._all
            try:
                async with asyncio.timeout(self._limits.wait_s):
                    for line in lines:
                        await line.enter()
                        held.callback(line.free.release)
            except TimeoutError:
                waited = f"waited for {self._limits.wait_s:g} s"
                raise BusyRefusalError(busy(f"{line.what} are under way: {waited}")) from None
            yield

    @contextmanager
    def _of_token(self, token: str) -> Iterator[_Line]:
        """The line of one token, which is there for as long as it has requests."""
        running, waiting = (most - most // 4 for most in (self._limits.running, self._limits.waiting))
        line = self._of_tokens.setdefault(token, _Line(f"{running} {self._what} of this token", running, waiting))
        line.requests += 1
        try:
            yield line
        finally:
            line.requests -= 1
            if not line.requests:
                del self._of_tokens[token]


class _Line:
    """Those that run, and those that wait for that."""

    def __init__(self, what: str, running: int, waiting: int) -> None:
        self.what, self.free, self.requests = what, asyncio.Semaphore(running), 0
        self._waiting, self._wait_at_most = 0, waiting

    async def enter(self) -> None:
        """Returns once it may run. Raises `BusyRefusalError` if too many wait."""
        if self.free.locked() and self._waiting >= self._wait_at_most:
            raise BusyRefusalError(busy(f"{self.what} are under way, and too many wait"))
        self._waiting += 1
        try:
            await self.free.acquire()
        finally:
            self._waiting -= 1
