"""Connections of uvicorn, of which none is waited for without end.

    no whole head of a request within 10 s     closed, also between two requests
    no TLS handshake within 10 s               closed
    2,000 connections, or half of the files
    that the process may have open             one more closes the one that has waited longest for a head
    a client that reads nothing for 60 s       the kernel closes the connection

uvicorn bounds none of these. Its own `limit_concurrency` would let idle connections keep all others away.
"""

from __future__ import annotations

import asyncio
import socket
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from lithify.gateway.listening.listen import ListenAddress
from lithify.gateway.listening.tls import TlsFiles

HEAD_S, UNREAD_S, KEEP_ALIVE_S = 10.0, 60, 15
CONNECTIONS_AT_MOST = 2_000
ACCEPTED_AT_ONCE = 128
"""Before any of them is closed."""
HEAD_BYTES = 32 * 1024
"""The line and headers of a request together, while they are incomplete: h11 refuses more."""
_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)


class BoundedProtocol(H11Protocol):
    """The protocol of one connection."""

    _head_by: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Has its first request awaited for a bounded time."""
        super().connection_made(transport)  # type: ignore[arg-type]
        connected = transport.get_extra_info("socket")
        if connected is not None and _USER_TIMEOUT is not None and connected.family != socket.AF_UNIX:
            connected.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, UNREAD_S * 1000)
        if len(self.connections) > connections_at_most():
            waiting = [one for one in self.connections if isinstance(one, BoundedProtocol) and one._head_by is not None]
            min(waiting, key=_deadline, default=self)._give_up()
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Bytes of a head, which do not lengthen the wait for it, or of a body."""
        if self._waits and self._head_by is None:
            self._await_head()
        super().data_received(data)
        if not self._waits:
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    @property
    def _waits(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        self._head_by = self.loop.call_later(HEAD_S, self._give_up)

    def _forget(self) -> None:
        if self._head_by is not None:
            self._head_by.cancel()
            self._head_by = None

    def _give_up(self) -> None:
        self._forget()
        if self._waits:
            self.transport.abort()


def connections_at_most() -> int:
    """The other half of the files is for what the process does: strangers need no token to connect."""
    files, _ = getrlimit(RLIMIT_NOFILE)
    return CONNECTIONS_AT_MOST if files == RLIM_INFINITY else min(CONNECTIONS_AT_MOST, files // 2)


def _deadline(connection: BoundedProtocol) -> float:
    return 0.0 if connection._head_by is None else connection._head_by.when()


class ServingLoop(asyncio.SelectorEventLoop):
    """The event loop of a server: who connects and then says nothing of TLS would be waited for for a minute."""

    async def create_server(self, *args: Any, **more: Any) -> asyncio.Server:
        """As always, with less time for a handshake."""
        bounded: dict[str, Any] = {"ssl_handshake_timeout": HEAD_S} if more.get("ssl") else {}
        create: Any = super().create_server
        server: asyncio.Server = await create(*args, **more, **bounded)
        return server


def uvicorn_settings(address: ListenAddress, tls: TlsFiles | None) -> dict[str, Any]:
    """Arguments of `uvicorn.Config` with which the promises of the gateway about connections hold."""
    files = {} if tls is None else {"ssl_certfile": str(tls.certificate), "ssl_keyfile": str(tls.key)}
    return {
        "host": address.host,
        "port": address.port,
        "http": BoundedProtocol,
        "loop": f"{__name__}:{ServingLoop.__name__}",
        "ws": "none",
        "backlog": ACCEPTED_AT_ONCE,
        "h11_max_incomplete_event_size": HEAD_BYTES,
        "timeout_keep_alive": KEEP_ALIVE_S,
        "proxy_headers": False,  # else a client says which address it has
        "server_header": False,
        "access_log": False,
        **files,
    }
