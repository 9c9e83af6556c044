"""`lithify completion`: prints the script with which a shell completes command lines."""

from __future__ import annotations

import click

from lithify.cli.completing.shells import SHELLS, script
from lithify.cli.invocation import Invocation, verb


@verb("completion")
@click.argument("shell", type=click.Choice([shell.name for shell in SHELLS]))
@click.pass_context
def completion(ctx: click.Context, invocation: Invocation, shell: str) -> None:
    """Print the script with which a shell completes command lines.

    It completes verbs, options and their values, names of topics, streams, groups and replicas of the
    warehouse that the command line or the environment names, and names of settings.

    \b
    Examples:
      echo 'eval "$(lithify completion bash)"' >> ~/.bashrc
      echo 'eval "$(lithify completion zsh)"' >> ~/.zshrc
      lithify completion fish > ~/.config/fish/completions/lithify.fish
    """
    click.echo(script(ctx.find_root().command, shell), nl=False)
