"""Who sends a request: the token in its header `Authorization: Bearer TOKEN`, if one is needed.

A token is taken from nowhere else. In an address it would get into logs and histories, and a cookie is sent by browsers
on behalf of other sites.
"""

from __future__ import annotations

from collections.abc import Callable

from lithify.gateway.access.callers import ANYONE, LOCAL, Caller
from lithify.gateway.access.heads import Headers
from lithify.gateway.access.refusals import Refusal, unauthorized
from lithify.gateway.access.token_cache import TokenCache
from lithify.model.access.tokens import hashed, parse_token
from lithify.model.settings.units import format_time

_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via")
_SCHEME = "bearer"


class Authentication:
    """Decides who sends a request.

    `tokens` is None where there is no database for them. Without `needs_token`, who sends none is `without_token`.
    """

    def __init__(
        self,
        tokens: TokenCache | None,
        now_ms: Callable[[], int],
        *,
        needs_token: bool,
        is_loopback: bool,
    ) -> None:
        self._tokens, self._now_ms = tokens, now_ms
        self._needs_token, self._is_loopback = needs_token, is_loopback

    async def caller(self, headers: Headers) -> Caller | Refusal:
        """The caller, or why there is none. Raises `CoordinationError` if the token cannot be looked up."""
        given = headers.get(b"authorization")
        if given is not None:
            return await self._of_header(given)
        if self._needs_token:
            return unauthorized("this gateway needs a token", "send it as `Authorization: Bearer TOKEN`")
        if not self._is_loopback:
            return ANYONE
        if headers.has(_FORWARDED):
            # On loopback no token is needed as only this machine reaches it, which a proxy has changed.
            return unauthorized(
                "a proxy has forwarded the request to a gateway that needs no token",
                "send a token, and run the gateway with `--require-tokens`",
            )
        return LOCAL

    async def _of_header(self, given: str) -> Caller | Refusal:
        scheme, _, text = given.partition(" ")
        if scheme.lower() != _SCHEME or parse_token(text.strip()) is None:
            return unauthorized("the header Authorization has no token of Lithify", "send `Bearer lithify_ID_SECRET`")
        return await self.of_token(text.strip())

    async def of_token(self, text: str) -> Caller | Refusal:
        """Who has the token of that text, or why it does not count. Raises `CoordinationError`."""
        parsed = parse_token(text)
        if parsed is None:
            return unauthorized("that is not a token of Lithify", "send `lithify_ID_SECRET`")
        token_id, secret = parsed
        token = None if self._tokens is None else await self._tokens.find(token_id)
        if token is None:
            hashed(secret)  # in the time that a known one takes
            return unauthorized("the token is unknown or revoked", "ask for a new one: `lithify token create`")
        if not token.accepts(secret):
            return unauthorized("the token is unknown or revoked", "ask for a new one: `lithify token create`")
        if token.expires_ms is not None and token.is_expired(self._now_ms()):
            return unauthorized(
                f"the token of {token.name} expired at {format_time(token.expires_ms)}",
                "ask for a new one: `lithify token create`",
            )
        return Caller(token.name, token.grants, token.id)
