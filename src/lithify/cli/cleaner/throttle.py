"""`lithify throttle`: changes the rates of running rounds, of a topic or of all cleaners (C40)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import say
from lithify.model.settings.units import format_bytes


@verb("throttle")
@click.argument("topic_name", metavar="[TOPIC]", required=False)
@parameters.rates("tasks")
@click.option("--unlimited", is_flag=True, help="No limit on either.")
def throttle(
    invocation: Invocation, topic_name: str | None, read_rate: str | None, write_rate: str | None, unlimited: bool
) -> None:
    """Change the rates of running rounds.

    Within 10 seconds it replaces the rates that the running rounds of this topic were started with;
    a round that starts later has its own. A rate that is not given is unlimited: give both to keep
    both limits.

    Without a topic it sets the rates of the running cleaners: each cleaner keeps to them with all its
    rounds together, running and later ones, until it is restarted.

    \b
    Examples:
      lithify throttle orders --read-rate 20MB/s --write-rate 10MB/s
      lithify throttle orders --unlimited
      lithify throttle --read-rate 100MB/s --write-rate 50MB/s
    """
    if unlimited and (read_rate or write_rate):
        raise click.UsageError("--unlimited goes without --read-rate and --write-rate")
    if not unlimited and not read_rate and not write_rate:
        raise click.UsageError("give --read-rate, --write-rate or --unlimited")
    runs = invocation.open_lake() if topic_name is None else invocation.open_whole_topic(topic_name)
    report = runs.throttle(read_rate=read_rate, write_rate=write_rate)
    if invocation.printed(report):
        return
    rates = f"{_said('read', report.read_rate_bytes)}, {_said('write', report.write_rate_bytes)}"
    if report.topic is None:
        say(f"within 10 s rounds of running cleaners {rates}")
    else:
        say(f"{report.topic}: within 10 s running rounds {rates}")


def _said(what: str, rate_bytes: int | None) -> str:
    return f"{what} without limit" if rate_bytes is None else f"{what} at most {format_bytes(rate_bytes)}/s"
