"""Records as Arrow columns, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lithify.columnar.schema import (
    HEADERS,
    HEADERS_TYPE,
    KEY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
)
from lithify.model.record import TIMESTAMP_TYPES, Record


def to_table(records: Sequence[Record]) -> pa.Table:
    """Records as a table of the columns that producers may give; missing ones are null."""
    return pa.table(
        {
            PARTITION: pa.array([r.partition for r in records], pa.int32()),
            OFFSET: pa.array([r.offset for r in records], pa.int64()),
            TIMESTAMP: pa.array([r.timestamp for r in records], pa.int64()),
            TIMESTAMP_TYPE: pa.array([TIMESTAMP_TYPES.index(r.timestamp_type) for r in records], pa.int32()),
            KEY: pa.array([r.key for r in records], pa.binary()),
            VALUE: pa.array([r.value for r in records], pa.binary()),
            HEADERS: pa.array(
                [[{"key": k, "value": v} for k, v in r.headers] if r.headers else None for r in records], HEADERS_TYPE
            ),
        }
    )


def to_records(table: pa.Table) -> Iterator[Record]:
    """The records of a table with the columns of a segment, in order."""
    for batch in table.to_batches(max_chunksize=8192):
        columns = [
            batch.column(n).to_pylist() for n in (PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS)
        ]
        for partition, offset, timestamp, timestamp_type, key, value, headers in zip(*columns, strict=True):
            yield Record(
                key=key,
                value=value,
                timestamp=timestamp,
                headers=tuple((h["key"], h["value"]) for h in headers or ()),
                partition=partition,
                offset=offset,
                timestamp_type=TIMESTAMP_TYPES[timestamp_type],
            )
