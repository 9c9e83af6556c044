"""`lithify topic alter`: changes the settings of a topic that has data, and adds partitions (C43)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.interruption import committing
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import say
from lithify.errors import RefusedError
from lithify.reports.changed_settings import AlterReport, change_notes
from lithify.reports.page.wording import in_units

if TYPE_CHECKING:
    from lithify.api.topic import Topic


@verb("alter")
@parameters.topic
@parameters.pairs("--config", "A topic setting. Repeatable.")
@click.option(
    "--unset",
    multiple=True,
    shell_complete=names.settings,
    metavar="NAME",
    help="Reset a setting to the stream's value, or its default. Repeatable.",
)
@click.option(
    "--add-config",
    type=parameters.AddedConfigType(),
    default={},
    help="Settings as kafka-configs takes them: cleanup.policy=[compact,delete],segment.bytes=1MiB.",
)
@click.option("--delete-config", default="", metavar="NAME,...", help="Settings to unset, as kafka-configs takes them.")
@click.option("--partitions", type=int, metavar="N", help="New number of partitions; it cannot decrease.")
def alter(  # noqa: PLR0913, PLR0917 - the flags of the verb, by name
    invocation: Invocation,
    topic_name: str,
    config: dict[str, str],
    unset: tuple[str, ...],
    add_config: dict[str, str],
    delete_config: str,
    partitions: int | None,
) -> None:
    """Change settings of a topic, or add partitions.

    All in one commit. A change applies from the next round, makes every log due for one, and restores
    no removed records. Settings that are not given are unchanged. Before a change from side-by-side to in-place
    drop the compacted view with `lithify topic uncompact`.

    \b
    Examples:
      lithify topic alter orders --config delete.retention.ms=7d
      lithify topic alter orders --config cleanup.policy=compact,delete
      lithify topic alter orders --unset min.compaction.lag.ms --partitions 8
      lithify topic alter orders --add-config cleanup.policy=[compact,delete]
    """
    if twice := sorted(config.keys() & add_config.keys()):
        raise RefusedError(f"{twice[0]} is given with both --config and --add-config", hint="use only one of them")
    set_by = {**dict.fromkeys(config, "--config"), **dict.fromkeys(add_config, "--add-config")}
    unset_by = {
        **dict.fromkeys((name.strip() for name in delete_config.split(",") if name.strip()), "--delete-config"),
        **dict.fromkeys(unset, "--unset"),
    }
    config |= add_config
    if not (config or unset_by or partitions is not None):
        raise click.UsageError("nothing to change: pass --config, --unset or --partitions")
    if both := sorted(set_by.keys() & unset_by.keys()):
        options = f"{set_by[both[0]]} and {unset_by[both[0]]}"
        raise RefusedError(f"{both[0]} is given with both {options}", hint="use only one of them")
    topic = invocation.open_whole_topic(topic_name)
    with committing(invocation, topic.name) as work:
        report = topic.alter(config, unset=tuple(unset_by), partitions=partitions)
        work.ended(report.version, changed=report.changed)
        _print(invocation, topic, report)


def _print(invocation: Invocation, topic: Topic, report: AlterReport) -> None:
    if invocation.printed(report):
        return
    if not report.changed:
        say(f"{report.topic}: nothing to change, still version {report.version}")
        return
    say(f"{report.topic}: changed, version {report.version}")
    for line in _changes(report):
        say(f"  {line}")
    for note in change_notes(report, topic.info().config):
        say(note)


def _changes(report: AlterReport) -> list[str]:
    lines = [
        f"{name}  {in_units(name, change.before)} → {in_units(name, change.after)}"
        for name, change in report.settings.items()
    ]
    lines += [f"{name}  the topic's own from now on" for name in report.own if name not in report.settings]
    lines += [f"{name}  inherited from the stream from now on" for name in report.inherited]
    if report.partitions_after != report.partitions:
        lines.append(f"partitions  {report.partitions} → {report.partitions_after}")
    return lines
