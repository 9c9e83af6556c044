"""`lithify consume` and `lithify table`: print records in offset order (C2, C7, C37), or the latest of every key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from lithify.cli import parameters
from lithify.cli.completing import names
from lithify.cli.invocation import Invocation, the_partition, verb
from lithify.cli.parameters import Members, PointType, StartType
from lithify.cli.records.encodings import encodings
from lithify.cli.records.group_consumer import write_group
from lithify.cli.terminal.output import flush, put
from lithify.columnar.text.encodings import Encodings
from lithify.columnar.text.lines import format_json
from lithify.errors import RefusedError
from lithify.model.cursor import AtTime, Start
from lithify.model.message import MessageId

if TYPE_CHECKING:
    from lithify.api.topic import Topic


_TO_ALONE = "--to cannot be combined with --group, --follow or --version"


@verb("consume")
@parameters.topic
@click.option(
    "--from",
    "start",
    type=StartType(),
    metavar="START",
    default="earliest",
    show_default=True,
    help="Start at earliest, latest, an offset, a message id or a time.",
)
@click.option("--partition", type=int, metavar="P", help="Read only this partition. Default: all.")
@click.option("--compacted", is_flag=True, help="Read the compacted view if there is one, then the backlog.")
@click.option(
    "--to",
    "point",
    type=PointType(),
    metavar="OFFSET|TIME",
    help="Stop before this offset, or before the first record at or after this time.",
)
@click.option("--max", "most", type=click.IntRange(0, 2**63 - 1), metavar="N", help="Stop after this many records.")
@click.option("--follow", is_flag=True, help="Keep reading new records until interrupted.")
@click.option("--version", type=int, metavar="VERSION", help="Read a retained version instead of the newest.")
@click.option(
    "--group",
    metavar="GROUP",
    help="Continue from the group's committed positions, and commit new ones.",
    shell_complete=names.groups,
)
@parameters.members
@click.option("--key", metavar="KEY", help="Only records of this key.")
@encodings
def consume(  # noqa: PLR0913, PLR0917 - the flags of the verb, by name
    invocation: Invocation,
    topic_name: str,
    start: Start,
    partition: int | None,
    most: int | None,
    encodings: Encodings,
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
    --compacted reads that up to the first dirty offset, then the backlog.

    With --to it reads a version that still has all records that counted there, or is refused.

    With --group it continues where the group has committed to, else at --from, and commits after printing.
    Its members share the partitions, and continue where one has died: a record may be printed twice.

    \b
    Examples:
      lithify consume orders --max 10
      lithify consume orders --partition 2 --from 1200
      lithify consume orders --key k1
      lithify consume orders --from 2026-01-31T12:00:00Z
      lithify consume orders --from latest --follow
      lithify consume persistent://shop/eu/orders --from 1042:17
      lithify consume states --compacted
      lithify consume orders --group billing --follow
      lithify consume orders --version 12
    """
    group = _checked_group(invocation, encodings, how)
    topic, named = invocation.open_topic(topic_name)
    where = (the_partition(topic_name, named, partition), start)
    if invocation.gateway_url() is not None:
        _write_remote(topic, where, most, encodings, how)
    elif group is not None:
        write_group(_member(topic, group, members, where, how), most, encodings, topic.name)
    else:
        _write(_tables(topic, where, encodings, how), most, encodings, topic.name)


def _checked_group(invocation: Invocation, encodings: Encodings, how: dict[str, Any]) -> str | None:
    """The group, which `how` has no more. Raises `RefusedError` for what it cannot be combined with."""
    group: str | None = how.pop("group")
    if encodings.key_bytes(how["key"]) is not None and group is not None:
        raise RefusedError("--key cannot be combined with --group: a group reads all records")
    if group is not None:
        invocation.check_direct("consume --group")
    return group


def _write_remote(
    topic: Any, where: tuple[int | None, Start], most: int | None, encodings: Encodings, how: dict[str, Any]
) -> None:
    _check_one_version(how)
    from lithify.cli.records.remote_lines import record_lines, write_lines
    from lithify.rules.reading.pieces import Reading

    Reading(follow=how["follow"]).check_version(how["version"])
    how["follow"] = how["follow"] and most != 0  # for no record a follower would wait until there is one
    write_lines(record_lines(topic, *where, encodings, **how), most)


def _tables(topic: Topic, where: tuple[int | None, Start], encodings: Encodings, how: dict[str, Any]) -> Iterator[Any]:
    """The records from a start on, or with `point` up to there (C69), as Arrow tables; all, or the records of a key."""
    key = encodings.key_bytes(how.pop("key"))
    return _of_key(_all_tables(topic, *where, how), key)


def _all_tables(topic: Topic, partition: int | None, start: Start, how: dict[str, Any]) -> Iterator[Any]:
    if partition is None and isinstance(start, int | MessageId) and topic.info().partitions == 1:
        partition = 0
    _check_one_version(how)
    if (point := how.pop("point")) is None:
        return topic.reader(partition, start, **how).batches()
    batches = topic.records_to(point, partition=partition, start=start, compacted=how["compacted"])
    return (batch.to_arrow() for batch in batches)


def _check_one_version(how: Mapping[str, Any]) -> None:
    """Raises `UsageError` if `--to`, which selects the version itself, is not alone."""
    if how["point"] is not None and (how["follow"] or how["version"] is not None):
        raise click.UsageError(_TO_ALONE)


def _member(topic: Topic, group: str, members: Members, where: tuple[int | None, Start], how: dict[str, Any]) -> Any:
    """The reader of a member. Raises `RefusedError` for what a group decides by itself."""
    how.pop("key")
    if how.pop("point") is not None:
        raise click.UsageError(_TO_ALONE)
    from lithify.api.groups import Membership, start_of_group

    partition, start = where
    start_of_group(partition, start, how.pop("version"))
    membership = Membership(group, members.lease_ms, members.coordination_url)
    return topic.reader(group=membership, start=start, **how)


@verb("table")
@parameters.topic
@click.option(
    "--at", "point", type=PointType(), metavar="OFFSET|TIME", help="Print it as it was at this offset or time."
)
@click.option("--partition", type=int, metavar="P", help="Print only this partition. Default: all.")
@click.option("--version", type=int, metavar="VERSION", help="Read a retained version instead of the newest.")
@click.option("--key", metavar="KEY", help="Look up this key alone.")
@encodings
def table(  # noqa: PLR0913, PLR0917 - the flags of the verb, by name
    invocation: Invocation,
    topic_name: str,
    point: int | AtTime | None,
    partition: int | None,
    version: int | None,
    encodings: Encodings,
    key: str | None,
) -> None:
    """Print the latest record of every live key.

    It prints one JSON object per line. The result does not depend on compaction or its mode: one record
    per partition and key. Deleted keys and records without a key are left out.

    With --key it looks up the key, in every partition or in the one of --partition, and reads only what is
    needed for that. If there is no record, the exit code is still 0, and a message on stderr says so.

    With --at it prints the records below that offset, or before the first record at or after that time, if
    the newest version or a retained one still has them. If no version has them, it is refused. An offset
    needs one partition.

    \b
    Examples:
      lithify table orders
      lithify table orders | jq -r .key
      lithify table orders --key k1
      lithify table orders --version 12
      lithify table orders --at 2026-01-31T12:00:00Z
      lithify table orders --partition 2 --at 1200
    """
    wanted = encodings.key_bytes(key)
    if point is not None and version is not None:
        raise click.UsageError("--at selects the version itself and cannot be combined with --version")
    topic, named = invocation.open_topic(topic_name)
    partition = the_partition(topic_name, named, partition)
    if invocation.gateway_url() is not None:
        from lithify.cli.records.remote_lines import table_lines, write_lines

        written = write_lines(table_lines(topic, partition, encodings, key, at=point, version=version), None)
    else:
        batches = topic.table_batches(version=version, at=point, partition=partition, key=wanted)
        written = _write((batch.to_arrow() for batch in batches), None, encodings, topic.name)
    if not written and (key is not None or point is not None):
        what = "no live key" if key is None else "no live record of that key"
        text = f"there is {what}" if point is None else f"there was {what} at that point"
        invocation.note("empty", f"{topic.name}: {text}")


def _of_key(tables: Iterator[Any], key: bytes | None) -> Iterator[Any]:
    if key is None:
        return tables
    from lithify.columnar.segment.convert import records_of_key

    return (records_of_key(table, key) for table in tables)


def _write(tables: Iterator[Any], most: int | None, encodings: Encodings, topic: str) -> int:
    """Writes the records of Arrow tables to stdout as JSON lines, up to the given number. Returns how many."""
    written = 0
    if most == 0:
        return 0
    for table in tables:
        taken = table if most is None else table.slice(0, most - written)
        for lines in format_json(taken, encodings, topic):
            put(lines)
        flush()  # per batch, so that followers see it at once; a batch is large, so this is cheap
        written += taken.num_rows
        if written == most:
            break
    return written
