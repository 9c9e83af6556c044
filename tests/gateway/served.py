"""A small application behind a guard, served by a real uvicorn, and requests to it: whole ones, and raw bytes."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import requests
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from lithify.errors import AccessDeniedError
from lithify.gateway.access.audit import note
from lithify.gateway.access.authentication import Authentication
from lithify.gateway.access.callers import caller_of, require
from lithify.gateway.access.failures import Failures
from lithify.gateway.access.middleware import Access, Guard, Kind
from lithify.gateway.access.token_cache import TokenCache
from lithify.gateway.listening.tls import TlsFiles
from lithify.gateway.process.serving import Serving
from lithify.model.access.roles import Role, parse_grant
from lithify.model.access.tokens import Token, hashed, token_text
from support.servers.gateways import bound_port

SECRET = "0123456789abcdef" * 4
WAIT_S = 120
NOW_MS = 1_700_000_000_000
LARGE = 16 * 2**20
_HEAD = re.compile(rb"content-length: (\d+)\r\n(?s:.*?)\r\n\r\n")


def a_token(name: str, *grants: str, token_id: str = "00000000000000aa", expires_ms: int | None = None) -> Token:
    return Token(name, token_id, hashed(SECRET), tuple(map(parse_grant, grants)), 0, expires_ms)


def bearer(token: Token, secret: str = SECRET) -> dict[str, str]:
    return {"Authorization": f"Bearer {token_text(token.id, secret)}"}


@dataclass(slots=True)
class Seen:
    """What the application has been asked."""

    asked: list[str] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    """Set once a held request may end."""
    pieces: int = 0
    """Of streams of events."""
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released by each held request when it has begun."""


async def echo(request: Request) -> Response:
    """Who asks, and how much came."""
    body = await request.body()
    request.app.state.seen.asked.append(f"{request.method} {request.scope['path']}")
    name = caller_of(request.scope).name
    return JSONResponse({"caller": name, "bytes": len(body), "method": request.method})


async def append(request: Request) -> Response:
    """What needs a role for the stream of its topic, and tells the audit log more."""
    note(request.scope, what="append", topic=request.path_params["name"])
    try:
        require(request.scope, Role.PRODUCE, request.path_params["name"].partition("/")[0])
    except AccessDeniedError as error:
        note(request.scope, code=error.code)
        return JSONResponse({"detail": str(error)}, 403)
    note(request.scope, run="run-1", version=7)
    return JSONResponse({"bytes": len(await request.body())})


async def hold(request: Request) -> Response:
    """Ends when the test says so."""
    request.app.state.seen.begun.release()
    await asyncio.to_thread(request.app.state.seen.held.wait, WAIT_S)
    return JSONResponse({})


async def fail(_request: Request) -> Response:
    raise ValueError("a defect")


async def events(request: Request) -> Response:
    """A stream until the test ends it."""

    async def told() -> AsyncIterator[bytes]:
        while not request.app.state.seen.held.is_set():
            request.app.state.seen.pieces += 1
            yield b"data: 1\n\n"
            await asyncio.sleep(0.01)

    return StreamingResponse(told(), media_type="text/event-stream")


async def large(_request: Request) -> Response:
    """More than the buffers of a connection hold."""
    return Response(bytes(LARGE))


async def health(_request: Request) -> Response:
    return JSONResponse({"ok": True}, headers={"Content-Security-Policy": "default-src 'none'"})


def application(seen: Seen) -> Starlette:
    some = ["GET", "POST", "DELETE", "PUT", "OPTIONS"]
    app = Starlette(
        routes=[
            Route("/healthz", health),
            Route("/large", large),
            Route("/hold", hold, methods=some),
            Route("/fail", fail, methods=some),
            Route("/events", events),
            Route("/topics/{name:path}", append, methods=["POST"]),
            Route("/{path:path}", echo, methods=some),
        ]
    )
    app.state.seen = seen
    return app


def kind_of(_method: str, path: str) -> Kind:
    return Kind(
        is_open=path in ("/healthz", "/large"), lane="streams" if path == "/events" else "requests", body_bytes=100_000
    )


def a_cache(tokens: Callable[[], tuple[Token, ...]]) -> TokenCache:
    return TokenCache(tokens, time.monotonic)


def an_access(*tokens: Token, needs_token: bool = True, is_loopback: bool = True, **more: Any) -> Access:
    """What a guard decides by, with these tokens and a clock that stands."""
    authentication = Authentication(
        a_cache(lambda: tokens), lambda: NOW_MS, needs_token=needs_token, is_loopback=is_loopback
    )
    plain = Access(authentication, Failures(time.monotonic), lambda: NOW_MS, kind_of=kind_of)
    return replace(plain, **more)


@dataclass(frozen=True, slots=True)
class Served:
    port: int
    seen: Seen

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, data: Any = None
    ) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False
            prepared = requests.Request(method, "http://x/", headers=headers, data=data).prepare()
            prepared.url = f"http://127.0.0.1:{self.port}{path}"  # as it is: a session would tidy the path
            return session.send(prepared, timeout=WAIT_S)

    def connection(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S)

    def raw(self, data: bytes) -> bytes:
        """All that comes back for these bytes, until the gateway closes the connection."""
        with self.connection() as connection:
            connection.sendall(data)
            return read_all(connection)

    def head(self, line: str, *headers: str, host: str = "localhost", body: bytes = b"") -> tuple[int, Any]:
        """The status, and the problem or answer, for a request of these very lines."""
        lines = [line, *([f"Host: {host}"] if host else []), *headers, "Connection: close"]
        answer = self.raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        return parsed(answer)


def parsed(answer: bytes) -> tuple[int, Any]:
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        body = body.partition(b"\r\n")[2].rpartition(b"\r\n0\r\n")[0]
    try:
        told = json.loads(body)
    except ValueError:
        told = body.decode("latin-1")
    return int(head.split(b" ")[1]), told


def read_all(connection: socket.socket) -> bytes:
    """Empty if the connection is closed, or reset, without an answer."""
    parts = []
    try:
        while part := connection.recv(65_536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def read_one(connection: socket.socket) -> tuple[int, Any]:
    """The status and the problem or answer of the next response, whose length is known."""
    told = b""
    while (found := _HEAD.search(told)) is None or len(told) < found.end() + int(found[1]):
        part = connection.recv(65_536)
        assert part, told
        told += part
    return parsed(told)


@contextmanager
def served(access: Access) -> Iterator[Served]:
    """The application behind a guard on a port of its own."""
    seen = Seen()
    with serving(Guard(application(seen), access), seen) as gateway:
        yield gateway


@contextmanager
def serving(guard: Guard, seen: Seen, tls: TlsFiles | None = None) -> Iterator[Served]:
    """A guard with an application that notes what it has `seen`."""
    bound = bound_port()
    server = Serving(guard, bound, tls)
    server.start()
    try:
        yield Served(bound.address.port, seen)
    finally:
        seen.held.set()
        server.close()
