"""Refuses what other web sites have a visitor's browser send: there are no tokens yet by which it would fail.

    Origin   another site's page sends a request that changes something (CSRF)
    Host     another site has given its own name the address of this machine (DNS rebinding)

Programs other than browsers send no `Origin`. `Host` is checked where the gateway listens on this machine alone: what
other names it has elsewhere is not known.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lithify.gateway.server.problems import problem


class OwnPages:
    """Lets requests through that no page of another site has sent."""

    def __init__(self, app: ASGIApp, *, loopback: bool) -> None:
        self._app, self._loopback = app, loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._loopback and not is_loopback(_host(host)):
            answer = problem(421, "Misdirected Request", "this gateway is only for its own machine: name 127.0.0.1")
        elif origin is not None and origin.partition("://")[2] != host:
            answer = problem(403, "Forbidden", "a page of another site has sent this request")
        else:
            await self._app(scope, receive, send)
            return
        await answer(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Whether a name or an address is of this machine alone."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _host(authority: str) -> str:
    try:
        return urlsplit(f"//{authority}").hostname or ""
    except ValueError:
        return ""
