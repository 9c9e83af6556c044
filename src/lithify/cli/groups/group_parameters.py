"""What verbs on groups share: the argument, and what they print while they wait for members that may be there."""

from __future__ import annotations

import click

from lithify.cli.completing import names
from lithify.cli.terminal.output import say
from lithify.model.settings.units import format_duration

group = click.argument("group", metavar="GROUP", shell_complete=names.groups)


def say_wait(what: str, most_ms: int) -> None:
    """Says what is waited for, and how long at most."""
    say(f"waiting up to {format_duration(most_ms)} to see {what}")
