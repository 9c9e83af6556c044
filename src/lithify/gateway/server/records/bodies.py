"""The bodies of appends: their bytes are bounded in total, over all requests that are under way.

The guard bounds each one, and the time that its sender takes. What would be too much in total is refused, not waited
for: requests that wait for each other's bytes could do so for ever.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from lithify.errors import BusyError
from lithify.model.settings.units import format_bytes

TOTAL_BYTES = 256 * 2**20


class Bodies:
    """For one event loop."""

    def __init__(self, most_bytes: int = TOTAL_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The body of a request, whose bytes count until the end of the context.

        Raises `BusyError`, or `ClientDisconnect` if its sender is gone before the end of it.
        """
        parts, size = bytearray(), 0
        try:
            async for part in request.stream():
                if self._bytes + len(part) > self._most_bytes:
                    raise BusyError(
                        f"appends of {format_bytes(self._most_bytes)} are under way", hint="send it again in a second"
                    )
                self._bytes += len(part)
                size += len(part)
                parts += part
            body = bytes(parts)
            parts.clear()
            yield body
        finally:
            self._bytes -= size
