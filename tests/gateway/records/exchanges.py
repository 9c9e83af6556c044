"""Records over HTTP, in both forms, and as the Python API has them."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lithify.model.record import Record

ORDERS = "/api/v1/topics/shop%2Forders"
RECORDS, TABLE = f"{ORDERS}/records", f"{ORDERS}/table"
LINES, ARROW = "application/x-ndjson", "application/vnd.apache.arrow.stream"
Row = tuple[Any, ...]


def stream_of(table: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def sent(records: Sequence[Record], media: str) -> bytes:
    """Records as a client sends them; JSON lines in base64."""
    if media == ARROW:
        headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
        return stream_of(
            pa.table(
                {
                    "partition": pa.array([r.partition for r in records], pa.int32()),
                    "timestamp": pa.array([r.timestamp for r in records], pa.int64()),
                    "key": pa.array([r.key for r in records], pa.binary()),
                    "value": pa.array([r.value for r in records], pa.binary()),
                    "headers": pa.array([[{"key": n, "value": v} for n, v in r.headers] for r in records], headers),
                }
            )
        )
    lines = [
        {
            "partition": r.partition,
            "timestamp": r.timestamp,
            "key": _text(r.key),
            "value": _text(r.value),
            "headers": [[name, _text(value)] for name, value in r.headers],
        }
        for r in records
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def rows_in(body: bytes, media: str) -> list[Row]:
    """What came back: partition, offset, timestamp, key, value and headers of each record."""
    if media == ARROW:
        told = pa.ipc.open_stream(body).read_all().to_pylist()
        return [
            (
                *(one[name] for name in ("partition", "offset", "timestamp", "key", "value")),
                tuple((h["key"], h["value"]) for h in one["headers"] or ()),
            )
            for one in told
        ]
    return [
        (
            *(one[name] for name in ("partition", "offset", "timestamp")),
            *(_bytes(one[name]) for name in ("key", "value")),
            tuple((name, _bytes(value)) for name, value in one["headers"]),
        )
        for one in map(json.loads, body.splitlines())
    ]


def row_of(record: Record) -> Row:
    """The same of a record that a reader returned."""
    return (record.partition, record.offset, record.timestamp, record.key, record.value, tuple(record.headers))


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)
