"""The two forms in which records are sent: JSON lines, as `lithify consume` prints them, and Arrow's IPC stream.

A failure within a stream cuts the connection, and is seen in the stream as well. JSON lines end with a line that has
only an error, and Arrow's stream with a message that has no end. So no reader takes it for a whole one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from lithify.columnar.text.encodings import Encodings
from lithify.columnar.text.lines import format_json
from lithify.errors import LithifyError
from lithify.gateway.operations.records import ARROW, LINES
from lithify.gateway.server.problems import error_json
from lithify.reports.page.wording import inert_json

LINES_TOO = ("application/json", "application/jsonl")
"""Other names under which JSON lines are taken."""
PIECE_BYTES = 2**20
"""About so many bytes of records are sent at once; a larger record is sent whole."""
_END = b"\xff\xff\xff\xff\0\0\0\0"
_NO_END = b"\xff\xff\xff\xff\xff\xff\xff\x7f"


class Form(Protocol):
    media: str

    def head(self, schema: pa.Schema) -> bytes: ...
    def pieces(self, table: pa.Table) -> Iterator[bytes]: ...
    def end(self) -> bytes: ...
    def failure(self, error: LithifyError) -> bytes: ...


class JsonLines:
    """Of the records of one topic."""

    media = LINES

    def __init__(self, topic: str, encodings: Encodings) -> None:
        self._topic, self._encodings = topic, encodings

    def head(self, schema: pa.Schema) -> bytes:
        return b""

    def pieces(self, table: pa.Table) -> Iterator[bytes]:
        return format_json(table, self._encodings, self._topic)

    def end(self) -> bytes:
        return b""

    def failure(self, error: LithifyError) -> bytes:
        return inert_json(json.dumps({"error": error_json(error)})).encode() + b"\n"


class ArrowStream:
    """Record batches with the columns of a segment, not compressed."""

    media = ARROW

    def head(self, schema: pa.Schema) -> bytes:
        return bytes(schema.serialize())

    def pieces(self, table: pa.Table) -> Iterator[bytes]:
        for batch in table.to_batches():
            yield bytes(batch.serialize())

    def end(self) -> bytes:
        return _END

    def failure(self, error: LithifyError) -> bytes:
        return _NO_END


def form_of(accept: str, topic: str, encodings: Encodings) -> Form:
    """By the header `Accept`: JSON lines unless it names Arrow's stream."""
    return ArrowStream() if ARROW in accept.lower() else JsonLines(topic, encodings)


def encoded(form: Form, schema: pa.Schema, tables: Iterator[Any]) -> Iterator[bytes]:
    """The bytes of a whole body, piece by piece."""
    before = form.head(schema)
    for table in tables:
        for part in _parts(table):
            for piece in form.pieces(part):
                yield before + piece if before else piece
                before = b""
    if last := before + form.end():
        yield last


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    rows = max(1, table.num_rows * PIECE_BYTES // max(1, table.nbytes))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)
