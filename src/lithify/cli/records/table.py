"""`lithify table`: the latest value of every live key."""

from __future__ import annotations

import click

from lithify.cli.invocation import Invocation, verb
from lithify.cli.records.consume import write_records
from lithify.cli.records.lines import ENCODINGS, Encoding


@verb("table")
@click.argument("topic_name", metavar="TOPIC")
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
    write_records((batch.to_arrow() for batch in topic.table_batches(version=version)), None, encoding, topic.name)
