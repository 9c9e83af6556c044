"""Who asks a gateway, and whether it may do what it asks."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from lithify.errors import AccessDeniedError
from lithify.model.access.roles import ADMIN, ALL, Grant, Role, allows, streams
from lithify.model.names import original_stream

Scope = MutableMapping[str, Any]
"""What ASGI says of a request."""
_KEY = "lithify.caller"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who has sent a request: the name of its token, and what that grants."""

    name: str
    grants: tuple[Grant, ...]
    token_id: str | None = None
    """None without a token."""

    def may(self, role: Role, stream: str = ALL) -> bool:
        """Whether it has the role for a stream, by its stored name, or by default for the whole warehouse."""
        return allows(self.grants, role, stream)

    def streams(self, role: Role) -> frozenset[str]:
        """Those for which it has the role, by their stored names; with `*` all."""
        return streams(self.grants, role)


LOCAL = Caller("local", (ADMIN,))
"""Who asks on this machine, where no token is needed."""
ANYONE = Caller("anyone", (ADMIN,))
"""Who asks where none is needed although other machines reach it."""


def put_caller(scope: Scope, caller: Caller) -> None:
    scope[_KEY] = caller


def has_caller(scope: Mapping[str, object]) -> bool:
    """Whether it is known who has sent the request."""
    return _KEY in scope


def caller_of(scope: Scope) -> Caller:
    """Who has sent the request. Raises `AccessDeniedError` if the path is open to all, and no token came."""
    caller = scope.get(_KEY)
    if not isinstance(caller, Caller):
        raise AccessDeniedError("this needs a token", hint="send it as `Authorization: Bearer TOKEN`")
    return caller


def require(scope: Scope, role: Role, stream: str = ALL) -> Caller:
    """The same. Raises `AccessDeniedError` if it lacks the role for a stream, by default for the warehouse."""
    caller = caller_of(scope)
    if caller.may(role, stream):
        return caller
    where = "the whole warehouse" if stream == ALL else f"stream {original_stream(stream)}"
    given = ", ".join(map(str, caller.grants))
    raise AccessDeniedError(
        f"the token of {caller.name} lacks the role {role} for {where}: it has {given}",
        hint=f"ask for a token with {Grant(role, stream)}",
    )
