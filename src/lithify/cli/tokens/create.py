"""`lithify token create`: the one place where the text of a token is printed."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.parameters import DurationType
from lithify.cli.terminal.output import put, say

NEVER = "never"
_LEAST_MS = 1_000
"""Bare numbers are milliseconds: who writes 30 for days gets an error instead of a token that has expired."""


class ExpiryType(DurationType):
    """A duration, or `never`."""

    name = "DURATION|never"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return 0 if value == NEVER else super().convert(value, param, ctx)


@verb("create")
@click.argument("name", metavar="NAME")
@click.option(
    "--grant",
    "grants",
    metavar="GRANT",
    required=True,
    multiple=True,
    help="ROLE:STREAM, or ROLE for all streams. Repeatable.",
)
@click.option(
    "--expires",
    "expires_ms",
    type=ExpiryType(_LEAST_MS),
    metavar="DURATION|never",
    default="90d",
    show_default=True,
    help="How long it is valid.",
)
@parameters.coordination_url
def create(
    invocation: Invocation, name: str, grants: tuple[str, ...], expires_ms: int, coordination_url: str | None
) -> None:
    """Create a token for a gateway and print it, once.

    NAME is who gets it: logs have this name. Only a hash of the token is stored, so it cannot be printed a second time.

    \b
    ROLE is one of
    - look: lists, status, settings, history
    - consume: read records; includes look
    - produce: append; includes look
    - topic: create, alter, delete, compact, verify, cut, undo; includes look
    - admin: everything

    ROLE alone, or ROLE:*, is for all streams, also later ones. Tokens, rates of cleaners and other things of the
    whole warehouse need admin without a stream.

    \b
    Examples:
      lithify token create alice --grant admin
      lithify token create billing --grant consume:shop --expires 30d
      TOKEN=$(lithify token create ci --grant topic:test --expires 1h)
    """
    tokens = invocation.open_lake().tokens(coordination_url=coordination_url)
    created = tokens.create(name, grants, expires_ms=expires_ms or None)
    if invocation.printed(created):
        return
    until = NEVER if created.expires_at is None else created.expires_at
    say(f"token {created.name}: {', '.join(created.grants)}; expires: {until}; it is printed only now:")
    put(f"{created.token}\n".encode())  # as it is: all that is printed for people has no secrets in it
