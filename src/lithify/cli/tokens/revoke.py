"""`lithify token revoke`."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import say


@verb("revoke")
@click.argument("name", metavar="NAME", shell_complete=names.tokens)
@parameters.coordination_url
def revoke(invocation: Invocation, name: str, coordination_url: str | None) -> None:
    """Revoke a token: gateways refuse it within 10 seconds.

    Work that was begun with it continues. The name can be used for a new token.

    \b
    Examples:
      lithify token revoke alice
    """
    revoked = invocation.open_lake().tokens(coordination_url=coordination_url).revoke(name)
    if not invocation.printed(revoked):
        say(f"token {revoked.name}: revoked; gateways refuse it within 10 s")
