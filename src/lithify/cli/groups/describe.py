"""`lithify group describe`: what a group has left to read (C59)."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.groups.group_parameters import group
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import print_page
from lithify.reports.groups import GroupLag


@verb("describe")
@group
@parameters.any_topic
@parameters.coordination_url
def describe(invocation: Invocation, group: str, topic_name: str | None, coordination_url: str | None) -> int:
    """Show what a group has left to read.

    It prints a line for every partition of its topics. POSITION is the committed position. LAG is the
    number of records that are left; Kafka also counts offsets that compaction has removed. LAG TIME is
    the age of the oldest record that is left. HOLDS is shown if the group holds tombstones
    (tombstone.hold.groups). Partitions without a committed position are read from their start. The exit
    code is 1 if the group cannot continue at a position: the log was recreated or truncated, deletes that
    it has not read are gone, or the log cannot be read.

    \b
    Examples:
      lithify group describe billing
      lithify group describe billing orders --json | jq .lag
    """
    lags = invocation.open_lake().group(group, coordination_url=coordination_url).describe(topic_name)
    if not invocation.printed(*lags):
        print_page(GroupLag.listed(lags))
    lost = [lag for lag in lags if lag.error is not None]
    for lag in lost:
        invocation.say_error(str(lag.error), lag.error_code, topic=lag.topic, partition=lag.partition)
    return 1 if lost else 0
