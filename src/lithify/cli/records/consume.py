"""`lithify consume` and `lithify table`: print records in offset order (C2, C7, C37), or the latest of every key."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, the_partition, verb
from lithify.cli.parameters import Members, StartType
from lithify.cli.records.group_consumer import write_group
from lithify.cli.records.lines import ENCODINGS, Encoding, format_json
from lithify.model.cursor import Start
from lithify.model.message import MessageId


@verb("consume")
@parameters.topic
@click.option(
    "--from",
    "start",
    type=StartType(),
    metavar="START",
    default="earliest",
    show_default=True,
    help="earliest, latest, an offset, a message id or a time.",
)
@click.option("--partition", type=int, metavar="P", help="Only this partition. Default: all.")
@click.option("--compacted", is_flag=True, help="Read the compacted view, where there is one, then the backlog.")
@click.option("--max", "most", type=click.IntRange(min=0), metavar="N", help="Stop after this many records.")
@click.option("--follow", is_flag=True, help="Continue with new records, until interrupted.")
@click.option("--version", type=int, metavar="VERSION", help="A kept version instead of the newest.")
@click.option("--group", metavar="GROUP", help="Continue where this group has committed to, and commit.")
@parameters.members
@click.option("--encoding", type=click.Choice(ENCODINGS), default="utf-8", show_default=True)
def consume(
    invocation: Invocation,
    topic_name: str,
    start: Start,
    partition: int | None,
    most: int | None,
    encoding: Encoding,
    members: Members,
    **how: Any,
) -> None:
    """Print records, one JSON object a line.

    They come in offset order, a partition at a time unless --follow mixes them as they arrive.
    Offsets are permanent: from an offset whose record was removed by compaction it starts at the next
    record. A time is ISO 8601 or @EPOCH_MS; a bare number is an offset. Records that are not
    UTF-8 text need --encoding base64.

    Records of a copied Pulsar topic also have message_id (LEDGER:ENTRY, in a batch LEDGER:ENTRY:INDEX),
    publish_time and event_time. --from takes such an id, too; whole entries that were copied unread
    have "passed_through":true.

    A topic with compaction.mode=side-by-side keeps all records and beside them a compacted view;
    --compacted reads the view up to the first dirty offset, then the backlog.

    With --group it continues where the group has committed to, else at --from, and commits after printing.
    Its members share the partitions, and continue where one has died: a record may be printed twice.

    \b
    Examples:
      lithify consume orders --max 10
      lithify consume orders --partition 2 --from 1200
      lithify consume orders --from 2026-01-31T12:00:00Z
      lithify consume orders --from latest --follow
      lithify consume persistent://shop/eu/orders --from 1042:17
      lithify consume states --compacted
      lithify consume orders --group billing --follow
      lithify consume orders --version 12
    """
    topic, named = invocation.open_topic(topic_name)
    partition = the_partition(topic_name, named, partition)
    if (group := how.pop("group")) is not None:
        from lithify.api.groups import Membership, start_of_group

        start_of_group(partition, start, how.pop("version"))
        membership = Membership(group, members.lease_ms, members.coordination_url)
        write_group(topic.reader(group=membership, start=start, **how), most, encoding, topic.name)
        return
    if partition is None and isinstance(start, int | MessageId) and topic.info().partitions == 1:
        partition = 0
    _write(topic.reader(partition, start, **how).batches(), most, encoding, topic.name)


@verb("table")
@parameters.topic
@click.option("--version", type=int, metavar="VERSION", help="As of a kept version instead of the newest.")
@click.option("--encoding", type=click.Choice(ENCODINGS), default="utf-8", show_default=True)
def table(invocation: Invocation, topic_name: str, version: int | None, encoding: Encoding) -> None:
    """Print the latest record of every live key.

    One JSON object a line. The result does not depend on compaction or its mode: one record per
    partition and key. Deleted keys and records without a key are left out.

    \b
    Examples:
      lithify table orders
      lithify table orders | jq -r .key
      lithify table orders --version 12
    """
    topic = invocation.open_whole_topic(topic_name)
    _write((batch.to_arrow() for batch in topic.table_batches(version=version)), None, encoding, topic.name)


def _write(tables: Iterator[Any], most: int | None, encoding: Encoding, topic: str) -> None:
    """Writes the records of Arrow tables to stdout as JSON lines, at most so many."""
    left = most
    if left == 0:
        return
    for table in tables:
        taken = table if left is None else table.slice(0, left)
        for lines in format_json(taken, encoding, topic):
            sys.stdout.buffer.write(lines)
        sys.stdout.buffer.flush()  # per batch, so that followers see it at once; a batch is large, so this is cheap
        if left is not None:
            left -= taken.num_rows
            if left == 0:
                return
