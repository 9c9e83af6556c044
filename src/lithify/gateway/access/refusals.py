"""What a gateway answers to a request that it does not pass on: a problem detail (RFC 9457)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from lithify.errors import AccessDeniedError, BusyError, InvalidInputError, LithifyError, UnknownOutcomeError

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A status of HTTP, the error that a client raises for it, and more headers."""

    status: HTTPStatus
    error: LithifyError
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())

    def body(self) -> bytes:
        problem = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": int(self.status),
            "detail": self.error.message,
            "code": self.error.code,
            "hint": self.error.hint or None,
            "exit_code": self.error.exit_code,
        }
        return json.dumps(problem).encode()

    async def send(self, send: Send) -> None:
        """Sends it, and has the connection closed: what may follow of the request is not read."""
        body = self.body()
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": int(self.status), "headers": headers})
        await send({"type": "http.response.body", "body": body})


def malformed(message: str, hint: str = "", status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> Refusal:
    """The request is not one that a well-made client sends."""
    return Refusal(status, InvalidInputError(message, hint=hint))


def forbidden(message: str, hint: str = "", status: HTTPStatus = HTTPStatus.FORBIDDEN) -> Refusal:
    return Refusal(status, AccessDeniedError(message, hint=hint))


def unauthorized(message: str, hint: str = "") -> Refusal:
    """No token, or one that does not count."""
    challenge = (b"www-authenticate", b'Bearer realm="lithify"')
    return Refusal(HTTPStatus.UNAUTHORIZED, AccessDeniedError(message, hint=hint), (challenge,))


def busy(
    message: str,
    retry_after_s: int = 1,
    status: HTTPStatus = HTTPStatus.SERVICE_UNAVAILABLE,
    hint: str = "try again later",
) -> Refusal:
    return Refusal(status, BusyError(message, hint=hint), ((b"retry-after", str(retry_after_s).encode()),))


def interrupted() -> Refusal:
    """The gateway ends while the application is at a request that changes something."""
    error = UnknownOutcomeError(
        "the gateway ended before it knew the outcome; the request may have taken effect",
        hint="look whether it has; an append with an idempotency key can be sent again",
    )
    return Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, error)
