"""SASL: a client names the mechanism PLAIN, then sends a token as the password. The name of the user may be any."""

from __future__ import annotations

import asyncio
from typing import Any

from lithify.errors import CoordinationError
from lithify.kafka_server.connections.answering import ClosingError
from lithify.kafka_server.requests.codes import Code
from lithify.kafka_server.requests.context import Context, LastAnswerError

PLAIN = "PLAIN"
TOKEN_CHECKED_S = 5.0
"""After so long a token is looked up again: it may have been revoked."""


async def handshake(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Takes the mechanism."""
    context.session.has_chosen = request["mechanism"] == PLAIN
    code = Code.NONE if context.session.has_chosen else Code.UNSUPPORTED_SASL_MECHANISM
    return {"error_code": code, "mechanisms": [PLAIN]}


async def authenticate(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Takes `\\0user\\0token`. Raises `LastAnswerError` for a wrong one."""
    session = context.session
    if not session.has_chosen:
        return {"error_code": Code.ILLEGAL_SASL_STATE, "error_message": "name the mechanism first"}
    parts = request["auth_bytes"].split(b"\0")
    token = parts[2].decode(errors="replace") if len(parts) == 3 else ""
    try:
        caller = await context.served.logins.caller(token, context.client_host)
    except CoordinationError:
        raise _refusal("tokens cannot be looked up now") from None
    if caller is None:
        raise _refusal("the password is not a valid token")
    session.caller, session.checked_s = caller, asyncio.get_running_loop().time()
    return {}


async def check_again(context: Context) -> None:
    """Raises `ClosingError` if the token of a client is not valid any more, or that cannot be known."""
    session, now_s = context.session, asyncio.get_running_loop().time()
    if session.caller is None or now_s - session.checked_s < TOKEN_CHECKED_S:
        return
    try:
        is_valid = await context.served.logins.is_valid(session.caller)
    except CoordinationError:
        is_valid = False
    if not is_valid:
        raise ClosingError(f"the token of {session.caller.name} cannot be found, or is no longer valid")
    session.checked_s = now_s


def _refusal(reason: str) -> LastAnswerError:
    return LastAnswerError(reason, {"error_code": Code.SASL_AUTHENTICATION_FAILED, "error_message": reason})
