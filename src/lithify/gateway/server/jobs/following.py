"""The events of a job, or of the whole gateway, as they come: server-sent events.

A response looks for new events after `TICK_S`, so that a thread that works never waits for a slow reader.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from starlette.responses import StreamingResponse

from lithify.gateway.server.jobs.jobs import ENDED, Job

TICK_S = 0.02
SLOWEST_TICK_S = 0.5
"""The pause between two looks grows while nothing happens."""
ALIVE_S = 15.0
"""Without news for so long, a comment is sent: else a proxy would close the connection."""


def events_of(job: Job, headers: Mapping[str, str], after: int = 0) -> StreamingResponse:
    """Its events after that number; the last one is `end`, with the job."""
    return StreamingResponse(
        _followed(job, after), headers={"Cache-Control": "no-store", **headers}, media_type="text/event-stream"
    )


async def _followed(job: Job, after: int) -> AsyncIterator[str]:
    tick_s, silent_s = TICK_S, 0.0
    while True:
        has_ended = job.state in ENDED
        fresh = job.since(after)
        for number, event in fresh:
            yield sse(event["event"], event, number)
            after = number
        if has_ended:
            yield sse("end", job.to_json(), after + 1)
            return
        tick_s = TICK_S if fresh else min(1.2 * tick_s, SLOWEST_TICK_S)
        silent_s = 0.0 if fresh else silent_s + tick_s
        if silent_s >= ALIVE_S:
            silent_s = 0.0
            yield ": still running\n\n"
        await asyncio.sleep(tick_s)


def sse(event: str, data: Mapping[str, Any], number: int) -> str:
    """One event. JSON has no line breaks outside of escapes."""
    return f"id: {number}\nevent: {event}\ndata: {json.dumps(data)}\n\n"
