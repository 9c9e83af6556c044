"""What stands before the application of a gateway: pure ASGI, around any application.

    request ─► target, headers ─► Host ─► Origin ─► token ─► turn ─► body ─► application
                    400, 414, 431   421     403     401, 429   503    413, 408      │
                                                     caller in the scope            └─► audit log

All that it refuses gets a problem detail, and is not seen by the application. What a caller may do is decided there, by
`callers.require` with the stream that it works on: never by the path, which two programs may read differently.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Literal, get_args

from lithify.errors import CoordinationError
from lithify.gateway.access.audit import Audit, AuditEntry, begin_notes, drop_later, note, noted, put_later
from lithify.gateway.access.authentication import Authentication
from lithify.gateway.access.bodies import GRACE_S, BoundedBody, Receive, length_refusal
from lithify.gateway.access.callers import Caller, Scope, put_caller
from lithify.gateway.access.failures import Failures
from lithify.gateway.access.heads import Headers, target_refusal
from lithify.gateway.access.hosts import AllowedHosts, cross_site_refusal
from lithify.gateway.access.page_headers import with_headers
from lithify.gateway.access.refusals import Refusal, Send, busy, interrupted
from lithify.gateway.access.turns import BusyRefusalError, TurnLimits, Turns

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_BYTES = 2**20
EVENTS = "text/event-stream"
APPENDS_AT_ONCE, READS_AT_ONCE = 64, 16
"""Each takes a thread."""
_READS = frozenset(("GET", "HEAD", "OPTIONS"))

Lane = Literal["requests", "streams", "appends", "reads"]
"""Short ones; events, for as long as a page is open; appends, which wait for a commit; reads of many records."""
LANES: tuple[Lane, ...] = get_args(Lane)


@dataclass(frozen=True, slots=True)
class Kind:
    """How a request is treated, by its method and path."""

    is_open: bool = False
    """It needs no token, and no turn: health, and the files of the page."""
    lane: Lane = "requests"
    """With which others it shares a bound on how many are worked on at once."""
    body_bytes: int = BODY_BYTES
    """At most."""


KindOf = Callable[[str, str], Kind]
"""By the method and the path as it was sent, with its escapes. What it does not know should need a token."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one gateway, by lane."""

    requests: TurnLimits = TurnLimits(running=64, waiting=256, wait_s=10.0)
    streams: TurnLimits = TurnLimits(running=64, waiting=0, wait_s=1.0)
    appends: TurnLimits = TurnLimits(running=APPENDS_AT_ONCE, waiting=256, wait_s=10.0)
    reads: TurnLimits = TurnLimits(running=READS_AT_ONCE, waiting=64, wait_s=10.0)
    body_grace_s: float = GRACE_S


@dataclass(frozen=True, slots=True)
class Access:
    """What a guard decides by. `now_ms` is the clock of the audit log."""

    authentication: Authentication
    failures: Failures
    now_ms: Callable[[], int]
    hosts: AllowedHosts = AllowedHosts()
    kind_of: KindOf = lambda _method, _path: Kind()
    limits: Limits = Limits()
    audit: Audit | None = None


@dataclass(slots=True)
class _Request:
    """One request on its way."""

    scope: Scope
    kind: Kind
    caller: Caller | None = None
    status: int | None = None
    is_audited: bool = True
    """Whether it is still to get a line in the audit log."""

    @property
    def changes(self) -> bool:
        return self.scope["method"] not in _READS

    @property
    def is_open(self) -> bool:
        """Only to read: nobody changes anything without a token."""
        return self.kind.is_open and not self.changes

    @property
    def lane(self) -> Lane:
        """The lane of its kind; a short one that asks for events follows its job, and is in the lane of streams."""
        follows = self.kind.lane == "requests" and EVENTS in (Headers(self.scope).get(b"accept") or "")
        return "streams" if follows else self.kind.lane

    @property
    def token_id(self) -> str | None:
        return None if self.caller is None else self.caller.token_id

    @property
    def address(self) -> str:
        client = self.scope.get("client")
        return client[0] if client else "-"

    def sending(self, send: Send, write: Callable[[_Request], None]) -> Send:
        """`send` that has the line written before the end of the answer: who gets that may rely on it.

        Events may take hours: their line is written before the first of them.
        """

        async def sent(event: MutableMapping[str, Any]) -> None:
            if event["type"] == "http.response.start":
                self.status = event["status"]
                is_time = self.lane == "streams"
            else:
                is_time = not event.get("more_body", False)
            if is_time:
                write(self)
            await send(event)

        return sent


class _TokenGoneError(Exception):
    """The token of a request was revoked or has expired while its answer was sent."""


class Guard:
    """An ASGI application before another one. For one event loop."""

    def __init__(self, application: Application, access: Access) -> None:
        self._application, self._access = application, access
        self._turns = {lane: Turns(getattr(access.limits, lane), lane) for lane in LANES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            await self._guarded(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        begin_notes(scope)
        request = _Request(scope, self._access.kind_of(scope["method"], bytes(scope["raw_path"]).decode("latin-1")))
        put_later(scope, partial(self._entry, request, None))
        send = request.sending(with_headers(send, stored=request.is_open), self._write)
        body = BoundedBody(receive, request.kind.body_bytes, self._access.limits.body_grace_s)
        try:
            refusal = await self._refusal(request) or await self._passed_on(request, body, send)
            if refusal is not None:
                note(scope, code=refusal.error.code)
                if not Headers(scope).has((b"expect",)):
                    await body.drain()
                await refusal.send(send)
        finally:
            drop_later(scope)
            self._write(request)

    async def _refusal(self, request: _Request) -> Refusal | None:
        """Why the application does not get it; sets the caller if it does."""
        refusal = self._foreign(request) or await self._nobody(request)
        if refusal is not None:
            return self._counted(refusal, request)
        headers = Headers(request.scope)
        return length_refusal(headers.get(b"content-length"), request.kind.body_bytes) or self._unwritten(request)

    def _foreign(self, request: _Request) -> Refusal | None:
        """Why it is refused, from wherever it comes."""
        scope, headers = request.scope, Headers(request.scope)
        server = scope.get("server")
        return (
            headers.refusal()
            or target_refusal(scope)
            or self._access.hosts.refusal(headers, server[0] if server else "")
            or cross_site_refusal(headers, scope["scheme"], is_page=request.is_open)
        )

    async def _nobody(self, request: _Request) -> Refusal | None:
        """Why nobody is known to have sent it; sets the caller if one is."""
        if request.is_open:
            return None
        try:
            found = await self._access.authentication.caller(Headers(request.scope))
        except CoordinationError as error:
            return busy(f"whose token it is cannot be looked up: {error.message}", 5)
        if isinstance(found, Refusal):
            return found
        request.caller = found
        put_caller(request.scope, found)
        return None

    def _counted(self, refusal: Refusal, request: _Request) -> Refusal:
        """Counts what strangers may send at any rate: beyond a rate it gets no lines in the audit log."""
        wait_s = self._access.failures.too_many(request.address)
        if not wait_s:
            return refusal
        request.is_audited = False
        if refusal.status is not HTTPStatus.UNAUTHORIZED:
            return refusal
        often = f"{request.address} has failed to authenticate too often"
        return busy(often, wait_s, HTTPStatus.TOO_MANY_REQUESTS, "check the token that this machine sends")

    def _unwritten(self, request: _Request) -> Refusal | None:
        """Nothing is changed while nothing can be written to the audit log."""
        try:
            if request.changes and self._access.audit is not None:
                self._access.audit.check()
        except OSError as error:
            return busy(f"the audit log of the gateway cannot be written: {error.strerror}", 5)
        return None

    async def _passed_on(self, request: _Request, body: BoundedBody, send: Send) -> Refusal | None:
        """Has the application answer; returns why that does not count, if its client was too slow or sent too much."""
        if request.is_open:
            return await self._answered(request, body, send)
        try:
            async with self._turns[request.lane].turn(request.token_id):
                return await self._answered(request, body, send)
        except BusyRefusalError as error:
            return error.refusal

    async def _answered(self, request: _Request, body: BoundedBody, send: Send) -> Refusal | None:
        async def sent(event: MutableMapping[str, Any]) -> None:
            if event.get("more_body", False) and await self._nobody(request) is not None:
                raise _TokenGoneError
            if body.refusal is None or request.status is not None:
                await send(event)

        try:
            await self._application(request.scope, body.receive, sent)
        except CancelledError:  # the gateway ends before the application has answered
            if request.status is None and request.changes:
                return interrupted()
            raise
        except _TokenGoneError:
            return None  # the server cuts the connection
        except Exception:
            if body.refusal is None:
                raise
        return body.refusal if request.status is None else None

    def _write(self, request: _Request) -> None:
        """A line, once, for what changes something or fails to, and for what was refused to its sender."""
        is_refused = request.status in (401, 403, 421) and not request.is_open
        if self._access.audit is None or not request.is_audited or not (request.changes or is_refused):
            return
        request.is_audited = False
        self._entry(request, request.status)

    def _entry(self, request: _Request, status: int | None, **more: Any) -> None:
        """One line of a request."""
        if self._access.audit is None:
            return
        scope, caller = request.scope, request.caller
        facts = {"what": f"{scope['method']} {bytes(scope['raw_path']).decode('latin-1')}", **noted(scope), **more}
        name, token_id = (None, None) if caller is None else (caller.name, caller.token_id)
        self._access.audit.write(AuditEntry(self._access.now_ms(), name, token_id, request.address, status, facts))
