"""`lithify sweep`: lists and deletes files that no retained version names (C6)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.confirmation import allow_clock_jump
from lithify.cli.terminal.output import print_page


@verb("sweep")
@parameters.any_topic
@click.option("--yes", is_flag=True, help="Delete the files. Without --yes, only list them.")
@click.option(
    "--allow-unusual",
    is_flag=True,
    help="Delete even if no version ever named most of the bytes, or the catalog lacks commits of the folder.",
)
@allow_clock_jump
def sweep(
    invocation: Invocation, topic_name: str | None, yes: bool, allow_unusual: bool, allow_clock_jump: bool
) -> None:
    """List or delete files that no retained version needs.

    It checks one topic, or all. A file can be deleted if no retained version references it. A file that a
    commit replaced is deleted versions.retention.ms after that commit. A file that no version ever
    referenced, such as a file of a failed run, is deleted sweep.grace.ms after its last change. Before
    that, a commit makes sure that no running run can still reference it. With --yes, retained versions
    that were closed longer than versions.retention.ms ago expire first, and their files are deleted as
    well. Files that Lithify did not write are never deleted. No other verb deletes files of an existing
    topic.

    \b
    Examples:
      lithify sweep
      lithify sweep orders --yes
      lithify sweep orders --json | jq .bytes
    """
    topics = invocation.open_lake().topics() if topic_name is None else (invocation.open_whole_topic(topic_name),)
    for topic in topics:
        location = topic.state().location
        report = topic.sweep(delete=yes, allow_unusual=allow_unusual, allow_clock_jump=allow_clock_jump)
        if not invocation.printed(report):
            print_page(report.page(location))
