"""The Arrow schema of segments (docs/format.md has the same table).

The field ids are those of the Iceberg schema; they are written into the Parquet files, so that engines need
no name mapping.
"""

from __future__ import annotations

import pyarrow as pa

PARTITION = "partition"
OFFSET = "offset"
TIMESTAMP = "timestamp"
TIMESTAMP_TYPE = "timestamp_type"
KEY = "key"
VALUE = "value"
VALUE_SIZE = "value_size"
HEADERS = "headers"

FIELD_IDS = {
    PARTITION: 1,
    OFFSET: 2,
    TIMESTAMP: 3,
    TIMESTAMP_TYPE: 4,
    KEY: 5,
    VALUE: 6,
    VALUE_SIZE: 7,
    HEADERS: 8,
    "headers.element": 9,
    "headers.element.key": 10,
    "headers.element.value": 11,
}

SCAN_COLUMNS = (OFFSET, KEY, VALUE_SIZE)
"""The columns that the key pass reads (C38)."""


def _field(name: str, kind: pa.DataType, *, path: str | None = None, nullable: bool = True) -> pa.Field:
    return pa.field(name, kind, nullable, metadata={"PARQUET:field_id": str(FIELD_IDS[path or name])})


HEADER_TYPE = pa.struct(
    [
        _field("key", pa.string(), path="headers.element.key", nullable=False),
        _field("value", pa.binary(), path="headers.element.value"),
    ]
)
HEADERS_TYPE = pa.list_(_field("element", HEADER_TYPE, path="headers.element", nullable=False))

SEGMENT_SCHEMA = pa.schema(
    [
        _field(PARTITION, pa.int32(), nullable=False),
        _field(OFFSET, pa.int64(), nullable=False),
        _field(TIMESTAMP, pa.int64(), nullable=False),
        _field(TIMESTAMP_TYPE, pa.int32(), nullable=False),
        _field(KEY, pa.binary()),
        _field(VALUE, pa.binary()),
        _field(VALUE_SIZE, pa.int32()),
        _field(HEADERS, HEADERS_TYPE),
    ]
)
"""`headers` is null for a record that has none, never an empty list. `timestamp_type` is Kafka's:
0 CreateTime, 1 LogAppendTime."""
