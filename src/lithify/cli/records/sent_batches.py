"""Batches as a gateway takes them: lines as JSON lines, tables of Parquet files as Arrow streams.

    {"key":"k","value":"v"}   ─►   {"timestamp":1700000000000,"key":"k","value":"v"}     the time at which it was read;
                                                                                         a timestamp of its own counts
    k TAB v                   ─►   {"timestamp":1700000000000,"key":"aw==","value":"dg=="}

Only Parquet needs Arrow. JSON is not parsed before it is sent: if the gateway refuses a batch, its lines are checked
here, to name the line as it was read.
"""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lithify.cli.records.encodings import query_of
from lithify.cli.records.record_files import Batch, Format, InputBatch, TextForm, line_batches, read_batches
from lithify.cli.records.text_lines import LineBatch
from lithify.columnar.text.encodings import Encodings
from lithify.columnar.text.lines import LineError, check_json
from lithify.errors import InvalidInputError, InvalidRecordError
from lithify.gateway.client.appending import Sent, ToldAppend
from lithify.gateway.operations.records import ARROW, LINES

if TYPE_CHECKING:
    from lithify.gateway.client.appending import Appender

STREAM_BYTES = 24 * 2**20
"""The most of a table in one append: the bounds of its columns come on top."""
_SPACE = b" \t\r"
"""What may precede a value of JSON in a line."""


@dataclass(frozen=True, slots=True)
class SentBatch(Batch):
    """Records for one append; `lines` of JSON are as they were read."""

    sent: Sent
    lines: list[bytes]
    encodings: Encodings

    def appended(self, appender: Appender, *, keep_offsets: bool) -> ToldAppend:
        return appender.append(self.sent, keep_offsets=keep_offsets)

    def named(self, error: InvalidInputError | InvalidRecordError) -> InvalidInputError | InvalidRecordError:
        """The error, with the line or row of the record that it is about, or all of them if it names none."""
        if isinstance(error, InvalidInputError):
            try:
                check_json(self.lines, self.encodings)
            except LineError as found:
                return self.malformed(found)
        return Batch.named(self, error)


def sent_batches(path: str, format_name: Format, form: TextForm, partition: int | None = None) -> Iterator[SentBatch]:
    """As `read_batches`, and with the same errors."""
    if format_name == "parquet":
        for table in read_batches(path, format_name, form, partition):
            yield from _streams(table)
        return
    for batch, read in line_batches(path, form.limits):
        try:
            if format_name == "json":
                body, encodings = _json_body(batch, read, form.encodings, partition), form.encodings
            else:
                body, encodings = _pairs_body(format_name, read, form, partition), Encodings.of("base64")
        except LineError as error:
            raise batch.malformed(error) from None
        lines = read.lines if format_name == "json" else []
        yield SentBatch(
            batch.source, batch.unit, batch.numbers, Sent(body, LINES, query_of(encodings)), lines, encodings
        )


def now_ms() -> int:
    """The time of this machine: it stamps the records that it reads."""
    return time.time_ns() // 1_000_000


def _json_body(batch: Batch, read: LineBatch, encodings: Encodings, partition: int | None) -> bytes:
    """Raises `LineError` for some that are not records, and `RefusedError` for a record of another partition."""
    lines = read.lines if partition is None else _placed(batch, read.lines, encodings, partition)
    parts = []
    for line, read_ms in zip(lines, read.read_ms, strict=True):
        text = line.lstrip(_SPACE)
        if not text.startswith(b"{"):
            check_json(read.lines, encodings)  # raises
        parts.append(b'{"timestamp":%d,%b\n' % (read_ms, text[1:]))
    return b"".join(parts)


def _placed(batch: Batch, lines: list[bytes], encodings: Encodings, partition: int) -> list[bytes]:
    check_json(lines, encodings)
    placed = []
    for index, record in enumerate(map(json.loads, lines)):
        own = record.get("partition")
        if own not in (None, partition):
            raise batch.misplaced(index, own, partition)
        placed.append(json.dumps({**record, "partition": partition}, ensure_ascii=False).encode())
    return placed


def _pairs_body(format_name: Format, read: LineBatch, form: TextForm, partition: int | None) -> bytes:
    """In base64, which takes any bytes. Raises `LineError`."""
    from lithify.columnar.text.pairs import tsv_pairs, value_pairs

    if format_name == "tsv":
        keys, values = tsv_pairs(read.lines, form.encodings, form.null_marker)
    else:
        assert form.key is not None
        keys, values = value_pairs(read.lines, form.encodings, form.key, form.null_marker)
    place = b"" if partition is None else b'"partition":%d,' % partition
    return b"".join(
        b'{"timestamp":%d,%b"key":%b,"value":%b}\n' % (read_ms, place, _text(key), _text(value))
        for read_ms, key, value in zip(read.read_ms, keys, values, strict=True)
    )


def _text(data: bytes | None) -> bytes:
    return b"null" if data is None else b'"%b"' % b64encode(data)


def _streams(batch: InputBatch) -> Iterator[SentBatch]:
    """A table as one stream, or as several if it is large."""
    import pyarrow as pa

    from lithify.columnar.arrivals.arrived_columns import GIVEN_SCHEMA, given_batches
    from lithify.columnar.segment.convert import pieces

    try:
        table = pa.Table.from_batches(list(given_batches(batch.table)), GIVEN_SCHEMA)
    except InvalidInputError as error:
        raise batch.named(error) from None
    given = table.select([name for name in GIVEN_SCHEMA.names if name in batch.table.schema.names])
    first = 0
    for piece in pieces(given.combine_chunks().to_batches(), STREAM_BYTES):
        body = pa.BufferOutputStream()
        with pa.ipc.new_stream(body, piece.schema) as stream:
            stream.write_batch(piece)
        numbers = batch.numbers[first : first + piece.num_rows]
        sent = Sent(body.getvalue().to_pybytes(), ARROW)
        yield SentBatch(batch.source, batch.unit, numbers, sent, [], Encodings.of("utf-8"))
        first += piece.num_rows
