"""SASL: a client names a mechanism, then proves that it has a token.

    PLAIN       it sends the token as the password; the name of the user may be any
    SCRAM       it proves that it has the token whose id is the user's name (`logins/scram.py`)

A login counts until the token ends: there is no other one on a connection (KIP-368), as it could last no longer.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from lithify.errors import CoordinationError
from lithify.kafka_protocol.codes import Code
from lithify.kafka_server.connections.answering import ClosingError
from lithify.kafka_server.logins.scram import Challenge, ScramError, WrongProofError, challenge
from lithify.kafka_server.requests.context import Caller, Context, LastAnswerError
from lithify.model.access.scram import KeyPair, Mechanism

PLAIN: Final = "PLAIN"
MECHANISMS: Final = (PLAIN, *Mechanism)
TOKEN_CHECKED_S = 5.0
"""After so long a token is looked up again: it may have been revoked."""
_WRONG = (
    "the user is not the id of a token, the password is not that token, "
    "or it was created before SCRAM was supported: create another token, or use PLAIN"
)
"""One text for all, so that names cannot be tried."""


async def handshake(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Takes the mechanism."""
    session = context.session
    if session.has_logged_in or session.login is not None:
        return {"error_code": Code.ILLEGAL_SASL_STATE, "mechanisms": [*MECHANISMS]}
    if request["mechanism"] not in MECHANISMS:
        return {"error_code": Code.UNSUPPORTED_SASL_MECHANISM, "mechanisms": [*MECHANISMS]}
    session.login = request["mechanism"]
    return {"error_code": Code.NONE, "mechanisms": [*MECHANISMS]}


async def authenticate(context: Context, request: dict[str, Any]) -> dict[str, Any]:
    """Takes the next message of a mechanism. Raises `LastAnswerError` for one that is wrong."""
    session, sent = context.session, bytes(request["auth_bytes"])
    begun, session.login = session.login, None
    try:
        match begun:
            case Challenge():
                return await _proved(context, begun, sent)
            case "PLAIN":
                return await _plain(context, sent)
            case str():
                session.login = challenge(Mechanism(begun), sent, context.served.logins.new_nonce())
                return {"auth_bytes": session.login.sent.encode()}
            case None:
                return {"error_code": Code.ILLEGAL_SASL_STATE, "error_message": "name the mechanism first, once"}
    except ScramError as error:
        raise _refusal(context, str(error)) from None
    except CoordinationError:  # a client that is told that its login failed would not try again
        raise ClosingError("tokens cannot be looked up now") from None


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


async def _plain(context: Context, sent: bytes) -> dict[str, Any]:
    """Takes `\\0user\\0token`."""
    parts = sent.split(b"\0")
    token = parts[2].decode(errors="replace") if len(parts) == 3 else ""
    caller = await context.served.logins.by_token(token)
    if caller is None:
        raise _refusal(context, "the password is not a valid token")
    return _logged_in(context, caller)


async def _proved(context: Context, begun: Challenge, sent: bytes) -> dict[str, Any]:
    """Takes a proof. All that is not one gets the same answer, whether there is such a token or not."""
    known = await context.served.logins.by_name(begun.user, begun.mechanism)
    nobody = bytes(len(begun.mechanism.digest(b"")))
    keys = None if known is None else known.keys
    try:
        answer = begun.answered(sent, keys or KeyPair(nobody, nobody))
    except WrongProofError:
        old = known is not None and keys is None
        why = f"no keys of SCRAM can be read for the token of {known.caller.name}" if known and old else _WRONG
        raise _refusal(context, why, _WRONG) from None
    assert known is not None
    return {**_logged_in(context, known.caller), "auth_bytes": answer}


def _logged_in(context: Context, caller: Caller) -> dict[str, Any]:
    session = context.session
    session.caller, session.checked_s, session.has_logged_in = caller, asyncio.get_running_loop().time(), True
    return {}


def _refusal(context: Context, reason: str, told: str | None = None) -> LastAnswerError:
    """The end of a login that failed. The client is `told` the reason, or less of it."""
    text = told or reason
    if context.served.logins.failed(context.client_host):
        text = f"{context.client_host} has failed to authenticate too often: check what this machine sends"
    return LastAnswerError(reason, {"error_code": Code.SASL_AUTHENTICATION_FAILED, "error_message": text})
