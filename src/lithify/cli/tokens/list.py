"""`lithify token list`."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import print_page, say
from lithify.reports.gateway.tokens import TokenInfo


@verb("list")
@parameters.coordination_url
def list_tokens(invocation: Invocation, coordination_url: str | None) -> None:
    """List the tokens for gateways, without their secrets.

    \b
    Examples:
      lithify token list
      lithify token list --json | jq -r 'select(.expired) | .name'
    """
    tokens = invocation.open_lake().tokens(coordination_url=coordination_url).infos()
    if invocation.printed(*tokens):
        return
    if not tokens:
        say("no tokens yet (`lithify token create NAME --grant ROLE` makes one)")
        return
    print_page(TokenInfo.listed(tokens))
