"""`lithify repair`: recreates a topic from its files, where catalog or metadata is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.cli.terminal.output import say, show
from lithify.errors import LithifyError, RefusedError
from lithify.model.settings.units import plural

if TYPE_CHECKING:
    from lithify.api.lake import Lake
    from lithify.reports.warehouse import RepairReport

_DOES = {
    "register": "restores version {version} in the catalog, unchanged",
    "rebuild": "recreates the topic from its segments",
    "finish-deletion": "deletes the files that its deletion left",
}
_DONE = {
    "register": "version {version} is in the catalog again, unchanged",
    "rebuild": "recreated from its segments",
    "finish-deletion": "the files that its deletion left are deleted",
}


@verb("repair")
@parameters.any_topic
@click.option("--all", "every", is_flag=True, help="Repair every topic that needs it.")
@click.option("--folder", metavar="DIR", help="Folder with the topic's files, if there are several.")
@click.option(
    "--metadata",
    metavar="FILE",
    help="Metadata file to use, if several are equally new, or if the catalog lacks its commits.",
)
@click.option("--yes", is_flag=True, help="Repair the topic. Without --yes, only show the plan.")
def repair(
    invocation: Invocation, topic_name: str | None, every: bool, folder: str | None, metadata: str | None, yes: bool
) -> int:
    """Recreate a topic whose catalog entry or metadata is lost.

    It uses the files in the topic's folder: the newest intact metadata, or else the segments alone. It
    reports what cannot be restored, and deletes nothing. It also reverts changes of other programs
    to the table. Without --yes nothing is changed; without a topic it lists those that need repair.
    Stop all writers of the topic first.

    \b
    Examples:
      lithify repair
      lithify repair orders
      lithify repair orders --yes
      lithify repair --all --yes
    """
    lake = invocation.open_lake()
    if topic_name is not None and every:
        raise RefusedError("--all repairs every topic, but a topic is given", hint="use one of them")
    if topic_name is None:
        return _all(invocation, lake, repairs=every and yes, given=folder or metadata)
    report = lake.repair(topic_name, yes, folder, metadata)
    _print(invocation, report)
    if report.way != "nothing" and not yes:
        refuse(f"{report.topic}: nothing was repaired", _DOES[report.way].format(version=report.version))
    return 0


def _all(invocation: Invocation, lake: Lake, *, repairs: bool, given: str | None) -> int:
    if given is not None:
        raise RefusedError("--folder and --metadata belong to one topic", hint="pass the topic")
    planned, failed = 0, False
    for name in lake.repairable():
        try:
            report = lake.repair(name)
            if report.way == "nothing":
                continue
            planned += 1
            _print(invocation, lake.repair(name, True) if repairs else report)
        except LithifyError as error:
            failed = True
            say(_of(str(name), str(error)))
    if not planned and not failed:
        say("no topic needs repair")
    elif planned and not repairs:
        say(
            f"{plural(planned, 'topic')} can be repaired; run `lithify repair TOPIC --yes`, or `lithify repair --all "
            "--yes`"
        )
    return 1 if failed else 0


def _print(invocation: Invocation, report: RepairReport) -> None:
    if invocation.printed(report):
        return
    if report.way == "nothing":
        say(_of(report.topic, *report.notes) if report.notes else f"{report.topic}: nothing is wrong with it")
        return
    show(_lines(report))
    if report.repaired:
        say(f"{report.topic}: {_DONE[report.way].format(version=report.version)}")


def _lines(report: RepairReport) -> Iterator[str]:
    def inside(text: str) -> str:
        return text.replace(f"{report.location}/", "")

    yield inside(_of(report.topic, report.trouble))
    yield f"  in {report.location}"
    for log in report.logs if report.way != "finish-deletion" else ():
        offsets = f"offsets {log.log_start_offset} to {log.log_end_offset}"
        yield f"  partition {log.partition}: {offsets}, {plural(log.records, 'record')}"
    yield from (f"  {inside(note)}" for note in report.notes)
    if report.way != "finish-deletion":
        yield f"  {'complete' if report.complete else 'incomplete, or not known to be complete'}"


def _of(topic: str, text: str) -> str:
    """Most errors begin with the topic's name."""
    return text if text.startswith(f"{topic}: ") else f"{topic}: {text}"
