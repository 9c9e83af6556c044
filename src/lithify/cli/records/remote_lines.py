"""Records through a gateway, which sends them as they are printed: lines are passed on as they come."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any, cast

from lithify.cli.records.encodings import query_of
from lithify.cli.terminal.output import flush, put
from lithify.columnar.text.encodings import Encodings
from lithify.gateway.operations.records import READ, TABLE
from lithify.model.cursor import AtTime, Start, check_of_all_logs
from lithify.model.message import MessageId


def record_lines(  # noqa: PLR0913 - the flags of the verb, by name
    topic: Any,
    partition: int | None,
    start: Start,
    encodings: Encodings,
    *,
    key: str | None,
    point: int | AtTime | None,
    follow: bool,
    version: int | None,
    compacted: bool,
) -> Iterator[bytes]:
    """What `consume` prints. Raises what a reader raises, and `GatewayError`."""
    given = {"from": start, "to": point, "compacted": compacted, "version": version, "key": key, **query_of(encodings)}
    if not follow:
        return cast("Iterator[bytes]", topic.lines(partition=partition, **given).streamed(READ))
    if partition is None and isinstance(start, int | MessageId):
        if topic.info().partitions > 1:
            check_of_all_logs(start)
        else:
            partition = 0
    return cast("Iterator[bytes]", topic.lines(**given).followed(partition))


def table_lines(
    topic: Any, partition: int | None, encodings: Encodings, key: str | None, **given: Any
) -> Iterator[bytes]:
    """What `table` prints. Raises what `table_batches` raises, and `GatewayError`."""
    lines = topic.lines(partition=partition, key=key, **given, **query_of(encodings))
    return cast("Iterator[bytes]", lines.streamed(TABLE))


def write_lines(parts: Iterator[bytes], most: int | None) -> int:
    """Writes lines to stdout, up to the given number. Returns how many."""
    written = 0
    with closing(cast("Generator[bytes]", parts)):
        for part in parts:
            taken = part if most is None else _first(part, most - written)
            put(taken)
            flush()
            written += taken.count(b"\n")
            if written == most:
                break
    return written


def _first(lines: bytes, most: int) -> bytes:
    if lines.count(b"\n") <= most:
        return lines
    return b"".join(line + b"\n" for line in lines.split(b"\n")[:most])
