"""`lithify gateway job`: command lines that gateways run all the time, or again and again."""

from __future__ import annotations

from copy import copy

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.invocation import Invocation, verb
from lithify.cli.parameters import DurationType
from lithify.cli.terminal.output import print_page, say
from lithify.model.jobs.command_lines import LEAST_EVERY_MS, check_words, verb_of
from lithify.model.settings.units import format_duration
from lithify.reports.jobs import StandingJobInfo

_job = click.argument("name", metavar="NAME", shell_complete=names.standing_jobs)


@verb("add")
@click.argument("name", metavar="NAME")
@click.argument("arguments", metavar="VERB...", nargs=-1, required=True)
@click.option(
    "--every",
    "every_ms",
    type=DurationType(LEAST_EVERY_MS),
    help="For a command that ends: the time between the end of a run and the next run.",
)
@click.option("--paused", is_flag=True, help="Run nothing until `lithify gateway job resume`.")
@parameters.coordination_url
def add(
    invocation: Invocation,
    name: str,
    arguments: tuple[str, ...],
    every_ms: int | None,
    paused: bool,
    coordination_url: str | None,
) -> None:
    """Add a standing job: a command line that one gateway at a time runs.

    Write the command line after `--`, as you would write it after `lithify`. It can be `kafka ingest`, `kafka
    publish`, `kafka hydrate`, `pulsar ingest`, `pulsar compact`, `hydrate` or `replica run`. Its options are
    checked now. It gets --warehouse, --catalog and --json of the gateway that runs it.

    A command that runs until it is stopped, such as with --continuous, is started again when it ends. A command
    that ends needs --every. After a failure the next run comes after a delay that grows with each failure, up to five
    minutes.

    Gateways start it in their own working directory, so write paths in full. Secrets are refused: put them into a
    file, or into the environment of the gateways.

    \b
    Examples:
      lithify gateway job add orders-in -- kafka ingest --topic orders \\
          --kafka-conf-file /etc/lithify/client.properties --continuous
      lithify gateway job add states --every 5m -- pulsar compact \\
          persistent://shop/eu/states --client-conf /etc/lithify/client.conf
      lithify gateway job add replicas -- replica run
    """
    check_words(arguments)
    _check_options(arguments)
    jobs = invocation.open_lake().standing_jobs(coordination_url=coordination_url)
    _print(invocation, jobs.add(name, arguments, every_ms=every_ms, paused=paused))


@verb("list")
@parameters.coordination_url
def list_jobs(invocation: Invocation, coordination_url: str | None) -> None:
    """List the standing jobs.

    GATEWAY is the gateway that runs the job, or has run it last, SINCE when that run began or ended, and LAST how
    the last run ended.

    \b
    STATE is one of
    - running
    - waiting: the next run is not due, or no gateway has begun it
    - failing: the last run failed; its error and the next run are below the line
    - paused

    \b
    Examples:
      lithify gateway job list
      lithify gateway job list --json | jq 'select(.state == "failing")'
    """
    jobs = invocation.open_lake().standing_jobs(coordination_url=coordination_url).list()
    if invocation.printed(*jobs):
        return
    if not jobs:
        say("no standing jobs yet (`lithify gateway job add NAME -- VERB` adds one)")
        return
    print_page(StandingJobInfo.listed(jobs))


@verb("pause")
@_job
@parameters.coordination_url
def pause(invocation: Invocation, name: str, coordination_url: str | None) -> None:
    """End the process of a standing job, and start none until it is resumed.

    It gets SIGTERM within seconds, and 10 seconds later SIGKILL.

    \b
    Examples:
      lithify gateway job pause orders-in
    """
    _print(invocation, invocation.open_lake().standing_jobs(coordination_url=coordination_url).pause(name))


@verb("resume")
@_job
@parameters.coordination_url
def resume(invocation: Invocation, name: str, coordination_url: str | None) -> None:
    """Resume a paused standing job.

    Any gateway may start it, also another one than before.

    \b
    Examples:
      lithify gateway job resume orders-in
    """
    _print(invocation, invocation.open_lake().standing_jobs(coordination_url=coordination_url).resume(name))


@verb("remove")
@_job
@parameters.coordination_url
def remove(invocation: Invocation, name: str, coordination_url: str | None) -> None:
    """Remove a standing job, and end its process.

    What it has done remains. The process gets SIGTERM within seconds, and 10 seconds later SIGKILL.

    \b
    Examples:
      lithify gateway job remove orders-in
    """
    info = invocation.open_lake().standing_jobs(coordination_url=coordination_url).remove(name)
    if not invocation.printed(info):
        say(f"{_summary(info)}: removed")


def _check_options(arguments: tuple[str, ...]) -> None:
    """Raises `click.UsageError`, the verb's own, for options that it does not take."""
    context = click.get_current_context().find_root()
    command = context.command
    words = verb_of(arguments).split()
    for number, word in enumerate(words, 1):
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None
        command = found
        if number < len(words):
            context = click.Context(command, parent=context, info_name=word)
    # With an object of its own: this command line's flags are not the job's.
    beside = click.Context(command, parent=context, info_name=words[-1], obj=Invocation())
    with beside.scope(cleanup=False):
        _without_files(command).parse_args(beside, list(arguments[len(words) :]))


def _without_files(command: click.Command) -> click.Command:
    """The same, but it looks for no file: those that a job names are on the machines of gateways."""
    alike = copy(command)
    alike.params = [copy(param) for param in command.params]
    for param in alike.params:
        if isinstance(param.type, click.Path):
            param.type = click.Path(readable=False)
    return alike


def _summary(info: StandingJobInfo) -> str:
    """`standing job orders-in: kafka ingest --topic orders --continuous, paused`"""
    every = "" if info.every_ms is None else f", every {format_duration(info.every_ms)}"
    return f"standing job {info.name}: {info.command}{every}{', paused' if info.paused else ''}"


def _print(invocation: Invocation, info: StandingJobInfo) -> None:
    if not invocation.printed(info):
        say(_summary(info))
