"""`lithify truncate`: removes the end of a log, whose offsets are assigned again (C26)."""

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


@verb("truncate")
@parameters.topic
@click.option("--partition", type=int, metavar="P", help="Partition. Optional if the topic has only one.")
@click.option("--to", type=int, required=True, metavar="OFFSET", help="New log end offset.")
@click.option(
    "--below-compacted", is_flag=True, help="Truncate below the first dirty offset too; superseded values stay lost."
)
@click.option("--yes", is_flag=True, help="Remove the records. Without --yes, only show how many there are.")
def truncate(
    invocation: Invocation, topic_name: str, partition: int | None, to: int, below_compacted: bool, yes: bool
) -> None:
    """Remove the newest records of a log.

    Removes the records at and above the offset, which becomes the log end offset; new records get
    the offsets from there on again. Readers that have passed it fail with an error. In compacted
    segments the values that the records had superseded are gone, so --below-compacted is needed
    there. Without --yes nothing is changed.

    \b
    Examples:
      lithify truncate orders --partition 0 --to 900
      lithify truncate orders --partition 0 --to 900 --yes
    """
    topic, named = invocation.open_topic(topic_name)
    number = one_partition(topic, topic_name, named, partition)
    if not yes and (planned := topic.plan_truncate(number, to, below_compacted=below_compacted)).changed:
        (cut,) = planned.logs
        refuse(
            f"{partition_of(topic.name, number)}: nothing was truncated",
            f"removes records at {count(to)} and above, at most {plural(cut.records_removed, 'record')}, irreversibly",
        )
    with committing(invocation, topic.name) as work:
        report = topic.truncate(number, to, below_compacted=below_compacted)
        work.ended(report.version, changed=report.changed)
        print_cut(
            invocation,
            report,
            f"partition {number} ends at {count(to)}",
            f"partition {number} already ends at {count(to)}",
        )
