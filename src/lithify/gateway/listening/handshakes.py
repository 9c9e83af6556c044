"""A connection until its TLS handshake is done: one of those that are counted, unlike with asyncio's own servers.

accepted ─► counted ─► handshake ─► its protocol, HTTP's or Kafka's, counted in its place
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from ssl import SSLContext
from typing import Any

TAKEN_S = 300.0
"""For what is left of an answer when the connection is to be closed. Most have less, by the size of that."""


class Handshake(asyncio.Protocol):
    """Stands among the connections of `protocol` until that takes over."""

    is_strange = True

    def __init__(self, protocol: Any, context: SSLContext, within_s: float) -> None:
        self._protocol, self._context, self._within_s = protocol, context, within_s
        self._loop = asyncio.get_running_loop()
        self.strange_since_s = self._loop.time()
        self._early = bytearray()
        """What the client has sent with the end of the handshake."""
        self._is_lost = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._transport.pause_reading()
        self._protocol.connections.add(self)
        self._task = self._loop.create_task(self._shaken())
        self._protocol.make_room()

    @property
    def host(self) -> str:
        """The address of the client."""
        peer = self._transport.get_extra_info("peername")
        return str(peer[0]) if peer else ""

    def data_received(self, data: bytes) -> None:
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True

    def give_up(self) -> None:
        """Closes it at once, and counts it no more."""
        self._protocol.connections.discard(self)
        self._transport.abort()

    shutdown = give_up

    async def _shaken(self) -> None:
        secured: Any = None
        try:
            if self._transport.is_closing():  # to make room for others
                return
            with suppress(OSError):  # strangers may send anything, or leave
                secured = await self._loop.start_tls(
                    self._transport,
                    self,
                    self._context,
                    server_side=True,
                    ssl_handshake_timeout=self._within_s,
                    ssl_shutdown_timeout=TAKEN_S,
                )
        finally:
            self._protocol.connections.discard(self)
        if secured is None or self._is_lost:
            return
        secured.set_protocol(self._protocol)
        self._protocol.connection_made(secured)
        if self._early:
            self._protocol.data_received(bytes(self._early))
