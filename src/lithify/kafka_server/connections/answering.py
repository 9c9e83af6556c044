"""What a connection needs of who answers: a session for each connection, and the answer to a frame."""

from __future__ import annotations

from typing import Any, Protocol

from lithify.errors import LithifyError

Answer = list[Any]
"""Buffers, to be sent one after the other."""
Address = tuple[str, int]
Reason = str | LithifyError
"""Why a connection is closed: what its client did, or what failed here."""


class ClosingError(Exception):
    """The connection is to be closed, after `last` if that is given. The reason is for the log of the gateway."""

    def __init__(self, reason: Reason, last: Answer | None = None) -> None:
        super().__init__(str(reason))
        self.reason, self.last = reason, last


class Session(Protocol):
    """What is known of who is connected."""

    @property
    def is_known(self) -> bool:
        """Whether it has logged in, or need not."""
        ...

    @property
    def token_id(self) -> str | None:
        """Of the token with which it has logged in."""
        ...


class Answering(Protocol):
    """Answers frames; for one event loop."""

    def begin(self, client: Address, local: Address) -> Session:
        """A connection of that client to that address of this machine."""
        ...

    async def answer(self, session: Any, frame: bytes) -> Answer | None:
        """The answer to a frame without its length; None if the client expects none. Raises `ClosingError`."""
        ...
