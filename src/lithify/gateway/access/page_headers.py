"""Headers with which a browser keeps the page of a gateway to itself, on every response that has none of its own."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from lithify.gateway.access.refusals import Send

CONTENT_SECURITY_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
)
HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
NOT_STORED = (b"cache-control", b"no-store")
"""For what a token or this machine may see."""


def with_headers(send: Send, *, stored: bool) -> Send:
    """`send` that adds them; browsers and proxies may keep a copy of the response only if it is `stored`."""

    async def sent(event: MutableMapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            given = list(event.get("headers", ()))
            names = {bytes(name).lower() for name, _ in given}
            more = HEADERS if stored else (*HEADERS, NOT_STORED)
            event = {**event, "headers": [*given, *(header for header in more if header[0] not in names)]}
        await send(event)

    return sent
