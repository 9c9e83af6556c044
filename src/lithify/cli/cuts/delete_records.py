"""`lithify delete-records`: makes the front of a log unreadable at once (C26)."""

from __future__ import annotations

import click

from lithify.cli import parameters
from lithify.cli.cuts.cut_results import print_cut
from lithify.cli.interruption import committing
from lithify.cli.invocation import Invocation, one_partition, verb
from lithify.cli.terminal.confirmation import refuse
from lithify.model.names import partition_of
from lithify.model.settings.units import plural
from lithify.reports.page.wording import count


@verb("delete-records")
@parameters.topic
@click.option("--partition", type=int, metavar="P", help="Partition. Optional if the topic has only one.")
@click.option("--before", type=int, required=True, metavar="OFFSET", help="New log start offset.")
@click.option("--yes", is_flag=True, help="Delete the records. Without --yes, only show how many there are.")
def delete_records(invocation: Invocation, topic_name: str, partition: int | None, before: int, yes: bool) -> None:
    """Delete the records below an offset.

    They are unreadable at once, also in a compacted view, and the log is due for a round, which
    removes them from storage. Other records keep their offsets; `lithify undo` does not restore deleted
    ones. Without --yes nothing is changed.

    \b
    Examples:
      lithify delete-records orders --partition 0 --before 1200
      lithify delete-records orders --partition 0 --before 1200 --yes
    """
    topic, named = invocation.open_topic(topic_name)
    number = one_partition(topic, topic_name, named, partition)
    log = partition_of(topic.name, number)
    if not yes and (planned := topic.plan_delete_records(number, before)).changed:
        (cut,) = planned.logs
        most = plural(cut.records_removed, "record")
        refuse(
            f"{log}: nothing was deleted", f"deletes all records below {count(before)}, at most {most}, irreversibly"
        )
    with committing(invocation, topic.name) as work:
        report = topic.delete_records(number, before)
        work.ended(report.version, changed=report.changed)
        print_cut(
            invocation,
            report,
            f"partition {number} starts at {count(before)}; the next round removes the records below it from storage",
            f"partition {number} already starts at or above {count(before)}",
        )
