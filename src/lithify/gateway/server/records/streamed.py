"""A body whose pieces are read on threads of their own, one ahead of what the client has taken.

thread    piece 1   piece 2   ·········   piece 3          a client that takes its time holds two pieces
client              piece 1               piece 2
client hangs up ──► no piece more is read, and the files are closed
an error ─────────► its mark, and the connection is cut before the end of the body
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from starlette.responses import StreamingResponse
from starlette.types import Send

from lithify.errors import LithifyError
from lithify.errors.defects import as_lithify_error
from lithify.gateway.server.records.media import Form


class Pieces:
    """The pieces of a body, read by threads of a pool, one at a time."""

    def __init__(self, pieces: Iterator[bytes], threads: ThreadPoolExecutor) -> None:
        self._pieces, self._threads = pieces, threads
        self._reading, self._closed = Lock(), False
        self.error: LithifyError | None = None
        """Why it ended too early."""

    async def first(self) -> bytes | None:
        """Before there is a response: raises what reading raises."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._next)

    async def rest(self, first: bytes | None) -> AsyncIterator[bytes]:
        """That one, and all others up to the end or an error."""
        loop, piece = asyncio.get_running_loop(), first
        while piece is not None:
            ahead = loop.run_in_executor(self._threads, self._next_or_error)
            yield piece
            piece = await ahead

    def close(self) -> None:
        """Ends it, once what is being read is there. Does not wait for that."""
        self._threads.submit(self._close)

    def _next(self) -> bytes | None:
        with self._reading:
            return None if self._closed else next(self._pieces, None)

    def _next_or_error(self) -> bytes | None:
        try:
            return self._next()
        except Exception as error:
            self.error = as_lithify_error(error, "read")
            return None

    def _close(self) -> None:
        with self._reading:
            self._closed = True
            if close := getattr(self._pieces, "close", None):
                close()


class RecordsResponse(StreamingResponse):
    """A body in pieces, the first of which is there already."""

    def __init__(self, pieces: Pieces, first: bytes | None, form: Form) -> None:
        super().__init__(pieces.rest(first), headers={"Cache-Control": "no-store"}, media_type=form.media)
        self._source, self._form = pieces, form

    async def stream_response(self, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in self.body_iterator:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            error = self._source.error
            if error is None:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            else:  # without an end: the server cuts the connection, so that no client takes the body for a whole one
                await send({"type": "http.response.body", "body": self._form.failure(error), "more_body": True})
        finally:
            self._source.close()
