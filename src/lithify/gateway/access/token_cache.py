"""The tokens of a warehouse in memory, so that a request does not wait for the database.

    age of what was read    a request
    up to 5 s               uses it
    up to 10 s              uses it, and has it read once more meanwhile
    more                    waits until it is read; refused if the database does not answer
    1 s, an unknown id      waits until it is read: the token may be new

So a revoked token counts for at most 10 s, and a flood of wrong ones causes one look a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from lithify.model.access.tokens import Token

FRESH_S, USABLE_S, NEW_S = 5.0, 10.0, 1.0


class TokenCache:
    """The tokens by their ids; `read` reads them all, in a thread, and `seconds` is a clock that only goes forward.

    For one event loop.
    """

    def __init__(self, read: Callable[[], Sequence[Token]], seconds: Callable[[], float]) -> None:
        self._read, self._seconds = read, seconds
        self._tokens: Mapping[str, Token] = {}
        self._read_s = -2 * USABLE_S - 1e9
        self._reading: asyncio.Task[None] | None = None

    async def find(self, token_id: str) -> Token | None:
        """The token of that id, if it is stored. Raises `CoordinationError` if that is not known."""
        age_s = self._seconds() - self._read_s
        if age_s >= USABLE_S or (token_id not in self._tokens and age_s >= NEW_S):
            await asyncio.shield(self._renewal())
        elif age_s >= FRESH_S:
            self._renewal()
        return self._tokens.get(token_id)

    def _renewal(self) -> asyncio.Task[None]:
        """The one look that is under way: requests wait for it together."""
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._renew())
            self._reading.add_done_callback(self._done)
        return self._reading

    async def _renew(self) -> None:
        begun_s = self._seconds()
        tokens = await asyncio.to_thread(self._read)
        self._tokens, self._read_s = {token.id: token for token in tokens}, begun_s

    def _done(self, task: asyncio.Task[None]) -> None:
        self._reading = None
        if not task.cancelled():
            task.exception()  # is told to those who wait; without any, the next request asks
