"""The body of a request, with a bound on its bytes and on the time that its sender takes.

    Content-Length too large          refused before anything is read
    chunks, without any length        refused as soon as they are too many bytes
    one byte now and then             refused after 10 s more than the bytes take at 64 KiB/s

The application then sees that the client has gone, as when it hangs up; what it answers is replaced by the refusal.
Only the time is counted in which the application waits for the sender.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from lithify.gateway.access.refusals import Refusal, busy, malformed
from lithify.model.settings.units import format_bytes

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

GRACE_S, LEAST_RATE = 10.0, 64 * 1024
DRAINED_S, DRAINED_BYTES = 1.0, 64 * 2**20
"""What is still read of a refused body: a client that is sending reads no answer before it has sent."""
_LENGTH_DIGITS = 18


def length_refusal(length: str | None, most_bytes: int) -> Refusal | None:
    """Why a body of that Content-Length is not read; None if it is, or if the length is not known."""
    if length is None:
        return None
    if not (length.isascii() and length.isdigit()):
        return malformed("the Content-Length is not a number")
    return _too_large(most_bytes) if len(length) > _LENGTH_DIGITS or int(length) > most_bytes else None


def _too_large(most_bytes: int) -> Refusal:
    return malformed(
        f"the body of the request is larger than {format_bytes(most_bytes)}",
        hint="send it in smaller parts",
        status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    )


class BoundedBody:
    """`receive` of a request; `refusal` is set once its bound is exceeded."""

    def __init__(self, receive: Receive, most_bytes: int, grace_s: float = GRACE_S) -> None:
        self._receive, self._most_bytes, self._grace_s = receive, most_bytes, grace_s
        self._bytes, self._waited_s, self._ended = 0, 0.0, False
        self.refusal: Refusal | None = None

    async def receive(self) -> MutableMapping[str, Any]:
        """The next part, or that the client has gone if there is a refusal."""
        if self._ended:
            return await self._receive()
        if self.refusal is None:
            part = await self._in_time()
            if part is not None:
                return part
        return {"type": "http.disconnect"}

    async def _in_time(self) -> MutableMapping[str, Any] | None:
        seconds = asyncio.get_running_loop().time
        begun_s, left_s = seconds(), self._grace_s + self._bytes / LEAST_RATE - self._waited_s
        try:
            async with asyncio.timeout(left_s):
                part = await self._receive()
        except TimeoutError:
            self.refusal = busy(
                "the body of the request came too slowly", status=HTTPStatus.REQUEST_TIMEOUT, hint="send it once more"
            )
            return None
        self._waited_s += seconds() - begun_s
        self._bytes += len(part.get("body", b""))
        self._ended = not part.get("more_body", False)
        if self._bytes > self._most_bytes:
            self.refusal = _too_large(self._most_bytes)
            return None
        return part

    async def drain(self) -> None:
        """Reads on for a moment, so that the client comes to read the refusal."""
        drained = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAINED_S):
                while not self._ended and drained < DRAINED_BYTES:
                    part = await self._receive()
                    drained += len(part.get("body", b""))
                    self._ended = not part.get("more_body", False)
