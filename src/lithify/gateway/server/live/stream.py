"""`GET /api/v1/events`: what happens in the gateway and in its catalog, as it happens, as server-sent events.

    hello     which gateway, which run of it, which version of the page      first, after each connection; with the
                                                                             number 0 all that is kept comes anew
    cleaner   an event of the cleaner                                        those that are kept, then new ones
    round     the progress of rounds of the cleaner
    job       the state and progress of a job
    topics    rows of the overview that have changed, and topics that are gone
    catalog   why the catalog cannot be read; null once it can
    clock     the time of the gateway, once its clock has jumped

Who comes back after a break says up to which number it has all of this run: `?run=...&after=17`. Who has missed what
is not kept any more, after a long break or by reading too slowly, begins anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

import lithify
from lithify.errors import BusyError
from lithify.gateway.access.callers import require
from lithify.gateway.server.jobs.following import ALIVE_S, sse
from lithify.gateway.server.live.events import Events
from lithify.gateway.server.live.watched import Watched
from lithify.model.access.roles import Role
from lithify.ports.clock import ahead_ms

TICK_S = 0.2
ROWS_AT_ONCE = 500
"""Of the overview, in one event."""
JUMP_MS = 1_000
"""A clock that is set by less is followed by no page: it shows times to the second."""
FOLLOWERS = 64
"""At the same time: each takes a connection."""


@dataclass(slots=True)
class Live:
    """The stream of a gateway; `page` is the version of its page."""

    name: str
    run: str
    page: str
    events: Events
    watched: Watched
    followers: int = 0
    _looking: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> Response:
        """The events from now on, or after those that the follower has. They are of all streams."""
        require(request.scope, Role.LOOK)
        if self.followers >= FOLLOWERS:
            raise BusyError(f"{FOLLOWERS} follow already", hint="try again later")
        after = request.query_params.get("after", "")
        known = request.query_params.get("run") == self.run and after.isascii() and after.isdecimal()
        number = int(after) if known and len(after) < 18 else 0
        events = self._followed(0 if self.events.lacks(number) else number)
        return StreamingResponse(events, headers={"Cache-Control": "no-store"}, media_type="text/event-stream")

    async def _followed(self, after: int) -> AsyncIterator[str]:
        self.followers += 1
        try:
            async for text in self._told(after):
                yield text
        finally:
            self.followers -= 1

    async def _told(self, after: int) -> AsyncIterator[str]:
        topics, error, silent_s = self.watched.number, None, 0.0
        clock = self.watched.lake.warehouse.clock
        ahead_before_ms = ahead_ms(clock)
        yield sse("hello", self.hello(), after)
        while True:
            fresh = []
            if self.events.lacks(after) or self.watched.lacks(topics):
                after, topics = 0, self.watched.number
                fresh.append(sse("hello", self.hello(), after))
            for number, kind, data in self.events.since(after):
                fresh.append(sse(kind, data, number))
                after = number
            self._look_if_due()
            changed = self.watched.since(topics)
            for start in range(0, len(changed.rows) + len(changed.gone), ROWS_AT_ONCE):
                rows = [row.to_json() for row in changed.rows[start : start + ROWS_AT_ONCE]]
                gone = list(changed.gone) if start == 0 else []
                fresh.append(sse("topics", {"now_ms": changed.now_ms, "topics": rows, "gone": gone}, after))
            topics = changed.number
            if changed.error != error:
                error = changed.error
                fresh.append(sse("catalog", {"error": error}, after))
            if abs(ahead_ms(clock) - ahead_before_ms) >= JUMP_MS:
                ahead_before_ms = ahead_ms(clock)
                fresh.append(sse("clock", {"now_ms": clock.now_ms()}, after))
            silent_s = 0.0 if fresh else silent_s + TICK_S
            if silent_s >= ALIVE_S:
                silent_s, fresh = 0.0, [": nothing new\n\n"]
            for text in fresh:
                yield text
            await asyncio.sleep(TICK_S)

    def _look_if_due(self) -> None:
        """Waits for no look: while the catalog does not answer, there are events nevertheless."""
        if self.watched.is_due and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(run_in_threadpool(self.watched.try_look))

    def hello(self) -> dict[str, Any]:
        """What a page has to know of the gateway."""
        return {"gateway": self.name, "run": self.run, "page": self.page, "version": lithify.__version__}
