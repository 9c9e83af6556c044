"""`lithify stream edit`: changes attributes of a stream, and the topics that inherit them (C43, C56)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import say
from lithify.errors import RefusedError
from lithify.model.settings.units import plural
from lithify.reports.page.wording import coded, in_units
from lithify.reports.streams import EditedTopic, StreamEditReport


@verb("edit")
@parameters.stream
@parameters.pairs("--config", "A stream attribute or a topic setting. Repeatable.")
@click.option(
    "--unset",
    multiple=True,
    shell_complete=names.settings,
    metavar="NAME",
    help="Reset an attribute or setting to its default. Repeatable.",
)
def edit(invocation: Invocation, stream_name: str, config: dict[str, str], unset: tuple[str, ...]) -> int:
    """Change attributes of a stream, and the settings that its topics inherit.

    Attributes that are not given are unchanged. Topics keep the settings of their own. For the others it is
    what `lithify topic alter` does: it applies from the next round, makes every log due for one, and restores
    no removed records. A topic that fails is named, and the command exits with 1; repeat it then.

    \b
    Examples:
      lithify stream edit eu --config compact=true
      lithify stream edit eu --config ttl=30d --unset deleteretention
    """
    if not (config or unset):
        raise click.UsageError("nothing to change: pass --config or --unset")
    if both := sorted(config.keys() & set(unset)):
        raise RefusedError(f"{both[0]} is given with both --config and --unset", hint="use only one of them")
    stream = invocation.open_lake().stream(stream_name)
    report = stream.edit(config, unset=unset)
    if not invocation.printed(report):
        _say(report)
        say(f"topics keep {stream.info().keeps}")
    return 1 if report.failed else 0


def _say(report: StreamEditReport) -> None:
    changed = [topic for topic in report.topics if topic.altered is not None]
    name = report.stream
    if not report.attributes and not changed and not report.failed:
        say(f"{name}: nothing to change")
        return
    say(f"{name}: changed, and {plural(len(changed), 'topic')} of {len(report.topics)} with it")
    for attribute, change in report.attributes.items():
        say(f"  {attribute}  {_set(attribute, change.before)} → {_set(attribute, change.after)}")
    for topic in changed:
        say(f"  {_altered(topic)}")
    for topic in report.failed:
        say(f"{topic.topic}: not changed: {coded(str(topic.error), topic.error_code)}")


def _altered(topic: EditedTopic) -> str:
    assert topic.altered is not None
    settings = ", ".join(
        f"{n} {in_units(n, c.before)} → {in_units(n, c.after)}" for n, c in topic.altered.settings.items()
    )
    due = f"; {plural(topic.altered.logs_due, 'log')} due once" if topic.altered.logs_due else ""
    return f"{topic.topic}: {settings}{due}"


def _set(attribute: str, value: str | None) -> str:
    return in_units(attribute, value) if value else "(not set)"
