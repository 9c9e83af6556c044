"""Connections of uvicorn, of which none is waited for without end.

    no whole head of a request within 10 s     closed, also between two requests
    no TLS handshake within 10 s               closed
    no request within 15 s after an answer     closed; what is left of the answer has a second more for each 64 KiB
    2,000 connections, or half of the files
    that the process may have open             one more closes some that are idle, in their handshake, or take what
                                               anyone may have: of the address with most of them, those that have had no
                                               request of a known caller for longest
    a client that reads nothing for 60 s       the kernel closes the connection

uvicorn bounds none of these. Its own `limit_concurrency` would let idle connections keep all others away.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from lithify.gateway.access.bodies import LEAST_RATE
from lithify.gateway.access.callers import has_caller
from lithify.gateway.listening.bound import BACKLOG
from lithify.gateway.listening.handshakes import Handshake
from lithify.gateway.listening.listen import ListenAddress
from lithify.gateway.listening.tls import TlsFiles

HEAD_S, UNREAD_S, KEEP_ALIVE_S = 10.0, 60, 15
CONNECTIONS_AT_MOST = 2_000
SPARE: Final = 32
"""One in so many connections is closed beside those that have to be."""
ACCEPTED_AT_ONCE = 32
"""Before any of them is closed, and before others are answered."""
HEAD_BYTES = 32 * 1024
"""The line and headers of a request together, while they are incomplete: h11 refuses more."""
_USER_TIMEOUT = getattr(socket, "TCP_USER_TIMEOUT", None)


class BoundedProtocol(H11Protocol):
    """The protocol of one connection."""

    strange_since_s = 0.0
    """When the last request of a known caller has ended, or when the connection was made."""
    _closed_by: asyncio.TimerHandle | None = None
    _head_has_begun = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Has its first request awaited for a bounded time."""
        super().connection_made(transport)  # type: ignore[arg-type]
        connected = transport.get_extra_info("socket")
        if connected is not None and _USER_TIMEOUT is not None and connected.family != socket.AF_UNIX:
            connected.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, UNREAD_S * 1000)
        self.strange_since_s = self.loop.time()
        self._await_head()
        self.make_room()

    def data_received(self, data: bytes) -> None:
        """Bytes of a head, which do not lengthen the wait for it, or of a body."""
        if self._waits and not self._head_has_begun:
            self._await_head()
        super().data_received(data)
        if not self._waits:
            self._forget()

    def on_response_complete(self) -> None:
        """Has the rest of the answer, and the next request, awaited for a bounded time."""
        self.strange_since_s, self._head_has_begun = self.loop.time(), False
        super().on_response_complete()
        if self._waits:
            self._close_in(KEEP_ALIVE_S + self.transport.get_write_buffer_size() / LEAST_RATE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def make_room(self) -> None:
        """Closes some if there are too many."""
        make_room(self.connections)

    @property
    def host(self) -> str:
        """The address of the client."""
        return "" if self.client is None else self.client[0]

    @property
    def is_strange(self) -> bool:
        """Whether no request of a known caller is under way."""
        return self._waits or not has_caller(self.cycle.scope)

    def give_up(self) -> None:
        """Closes it at once, and counts it no more."""
        self._forget()
        self.connections.discard(self)
        self.transport.abort()

    @property
    def _waits(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        self._head_has_begun = True
        self._close_in(HEAD_S)

    def _close_in(self, seconds: float) -> None:
        self._forget()
        self._closed_by = self.loop.call_later(seconds, self.give_up)

    def _forget(self) -> None:
        if self._closed_by is not None:
            self._closed_by.cancel()
            self._closed_by = None


def connections_at_most(share: int = 2) -> int:
    """One in `share` of the files. Others are for what the process does: strangers need no token to connect."""
    files, _ = getrlimit(RLIMIT_NOFILE)
    return CONNECTIONS_AT_MOST if files == RLIM_INFINITY else min(CONNECTIONS_AT_MOST, files // share)


def make_room(connections: set[Any], share: int = 2) -> Sequence[Any]:
    """Closes some if there are too many, and returns them: the newest only if others are at requests of known callers.

    Who connects from one address, however often, closes none of another one that has fewer connections. Some more are
    closed than have to be, so that not each new one is compared with all others.
    """
    most = connections_at_most(share)
    if (over := len(connections) - most) <= 0:
        return ()
    by_host: dict[str, list[Any]] = {}
    for one in sorted((one for one in connections if one.is_strange), key=lambda one: -one.strange_since_s):
        by_host.setdefault(one.host, []).append(one)
    ranked = [(-rank, one.strange_since_s, one) for ones in by_host.values() for rank, one in enumerate(ones)]
    ranked.sort(key=lambda of: of[:2])
    gone = [one for *_, one in ranked[: over + min(most // SPARE, (len(ranked) - over) // 2)]]
    for one in gone:
        one.give_up()
    return gone


class ServingLoop(asyncio.SelectorEventLoop):
    """The event loop of a server. It counts connections from their beginning, also those that say nothing of TLS."""

    share = 2
    """One in so many files of the process may be a connection."""

    async def create_server(self, *args: Any, **more: Any) -> asyncio.Server:
        """As always, with less time for a handshake, and more clients that wait than are accepted at once."""
        more["backlog"] = ACCEPTED_AT_ONCE
        create: Any = super().create_server
        context = more.pop("ssl", None)
        if context is not None:
            made, *rest = args
            args = (lambda: Handshake(made(), context, HEAD_S), *rest)
        server: asyncio.Server = await create(*args, **more)
        more["sock"].listen(BACKLOG)
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
        "h11_max_incomplete_event_size": HEAD_BYTES,
        "timeout_keep_alive": KEEP_ALIVE_S,
        "proxy_headers": False,  # else a client says which address it has
        "server_header": False,
        "access_log": False,
        **files,
    }
