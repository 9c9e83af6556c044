"""`lithify throttle`: changes the rates of running rounds, of a topic or of all cleaners (C40)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import say
from lithify.reports.rounds.rate_limits import cleaners_of, rates_text


@verb("throttle")
@parameters.any_topic
@parameters.rates("tasks", says=False)
@click.option("--unlimited", is_flag=True, help="Remove both limits.")
@click.option("--shared", is_flag=True, help="Divide the rates among all running cleaners.")
def throttle(
    invocation: Invocation,
    topic_name: str | None,
    read_rate: int | None,
    write_rate: int | None,
    unlimited: bool,
    shared: bool,
) -> None:
    """Change the rates of running rounds, or of all cleaners.

    Within 10 seconds it replaces the rates that the running rounds of this topic were started with;
    a round that starts later has its own. A rate that is not given is unlimited: give both to keep
    both limits.

    Without a topic it replaces the rates of all cleaners, running and later ones. They limit all rounds
    of a cleaner together. With --shared they limit all cleaners together, which divide the rates whenever
    a cleaner starts or ends. They last until the next `throttle`; after --unlimited, cleaners that start
    have their own rates again.

    \b
    Examples:
      lithify throttle orders --read-rate 20MB/s --write-rate 10MB/s
      lithify throttle orders --unlimited
      lithify throttle --read-rate 100MB/s --write-rate 50MB/s --shared
    """
    if unlimited and (read_rate or write_rate):
        raise click.UsageError("--unlimited cannot be combined with --read-rate or --write-rate")
    if not unlimited and not read_rate and not write_rate:
        raise click.UsageError("pass --read-rate, --write-rate or --unlimited")
    if shared and (topic_name is not None or unlimited):
        raise click.UsageError("--shared is for rates of cleaners: it cannot be combined with a topic or --unlimited")
    if topic_name is None:
        report = invocation.open_lake().throttle(read_rate=read_rate, write_rate=write_rate, shared=shared)
    else:
        report = invocation.open_whole_topic(topic_name).throttle(read_rate=read_rate, write_rate=write_rate)
    if invocation.printed(report):
        return
    if report.topic is not None:
        say(f"{report.topic}: within 10 s running rounds {rates_text(report)}")
    elif unlimited:
        say("within 10 s running cleaners read and write without limit; cleaners that start later have their own rates")
    else:
        say(f"within 10 s {cleaners_of(report)} {rates_text(report)}, even after a restart")
