"""The schema of Spark's Kafka source, and the conversion of segments to it.

    segment          partition offset timestamp  timestamp_type  key value headers   (+ the topic's name)
    Spark      topic partition offset timestamp  timestampType   key value headers
                                      (ms ► µs, UTC)

With `includeMessageIds` also what copies of Pulsar topics have besides (C52), null for records of other topics:
ledger_id entry_id batch_index event_time passed_through metadata, named as in the segment.

Only the requested columns are read from files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lithify.columnar.segment.schema import (
    BATCH_INDEX,
    ENTRY_ID,
    ENVELOPE_COLUMNS,
    EVENT_TIME,
    HEADERS,
    KEY,
    LEDGER_ID,
    METADATA,
    OFFSET,
    PARTITION,
    PASSED_THROUGH,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
)
from lithify.errors import LithifyError, RefusedError

TOPIC = "topic"
KAFKA_TIMESTAMP_TYPE = "timestampType"

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

SCHEMA = StructType(
    [
        StructField(KEY, BinaryType()),
        StructField(VALUE, BinaryType()),
        StructField(TOPIC, StringType()),
        StructField(PARTITION, IntegerType()),
        StructField(OFFSET, LongType()),
        StructField(TIMESTAMP, TimestampType()),
        StructField(KAFKA_TIMESTAMP_TYPE, IntegerType()),
        StructField(HEADERS, ArrayType(_HEADER)),
        StructField(LEDGER_ID, LongType()),
        StructField(ENTRY_ID, LongType()),
        StructField(BATCH_INDEX, IntegerType()),
        StructField(EVENT_TIME, TimestampType()),
        StructField(PASSED_THROUGH, BooleanType()),
        StructField(METADATA, BinaryType()),
    ]
)
BATCH_RECORDS = 16 * 1024
"""Records per Arrow batch that is sent to the JVM."""

_STORED = {KAFKA_TIMESTAMP_TYPE: TIMESTAMP_TYPE}


def schema_of(columns: Sequence[str] | None, *, include_headers: bool, include_message_ids: bool) -> StructType:
    """The schema of a read: the named columns, else all; headers and message ids only if included.

    Raises `RefusedError` for an unknown or duplicate column.
    """
    if columns is None:
        left_out = {*(() if include_headers else (HEADERS,)), *(() if include_message_ids else ENVELOPE_COLUMNS)}
        columns = [name for name in SCHEMA.names if name not in left_out]
    for name in columns:
        if name not in SCHEMA.names:
            raise RefusedError(f"columns: there is no column {name!r}", hint=f"use one of: {', '.join(SCHEMA.names)}")
        if list(columns).count(name) > 1:
            raise RefusedError(f"columns: {name!r} is given twice")
    return StructType([SCHEMA[name] for name in columns])


def check_schema(schema: StructType) -> None:
    """Raises `RefusedError` if a user's schema has an unknown column or another type."""
    for field in schema.fields:
        if field.name not in SCHEMA.names:
            raise RefusedError(
                f"the schema has an unknown column {field.name!r}", hint=f"use one of: {', '.join(SCHEMA.names)}"
            )
        known = SCHEMA[field.name].dataType
        if field.dataType.simpleString() != known.simpleString():
            raise RefusedError(
                f"the schema has {field.name} as {field.dataType.simpleString()}, but its type is "
                f"{known.simpleString()}"
            )


def stored_columns(schema: StructType) -> list[str]:
    """The columns of a segment to read for `schema`."""
    return [_STORED.get(name, name) for name in schema.names if name != TOPIC]


def to_spark(table: pa.Table, topic: str, schema: StructType) -> Iterator[pa.RecordBatch]:
    """Converts records with the `stored_columns` to batches of `schema`.

    Raises `LithifyError` for a timestamp beyond Spark's range.
    """
    target = to_arrow_schema(schema, timezone="UTC")
    arrays = [_CONVERSIONS[field.name](table, topic, field.type) for field in target]
    yield from pa.Table.from_arrays(arrays, schema=target).to_batches(max_chunksize=BATCH_RECORDS)


_Conversion = Callable[[pa.Table, str, pa.DataType], pa.ChunkedArray | pa.Array]


def _stored(column: str) -> _Conversion:
    def take(table: pa.Table, _topic: str, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
        if column not in table.column_names:  # a record of another kind of topic
            return pa.nulls(table.num_rows, kind)
        return table.column(column).cast(kind)

    return take


def _topic(table: pa.Table, topic: str, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(topic, kind), table.num_rows)


def _time(column: str) -> _Conversion:
    def take(table: pa.Table, topic: str, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
        if column not in table.column_names:
            return pa.nulls(table.num_rows, kind)
        try:
            return pc.multiply_checked(table.column(column), 1000).cast(kind)
        except pa.ArrowInvalid:
            raise LithifyError(
                f"{topic}: a timestamp is outside the range of Spark's TIMESTAMP, about 292,000 years before or after "
                "1970",
                hint=f"read without the column {column}: .option('columns', 'key,value,partition,offset')",
            ) from None

    return take


_CONVERSIONS: dict[str, _Conversion] = {
    KEY: _stored(KEY),
    VALUE: _stored(VALUE),
    TOPIC: _topic,
    PARTITION: _stored(PARTITION),
    OFFSET: _stored(OFFSET),
    TIMESTAMP: _time(TIMESTAMP),
    KAFKA_TIMESTAMP_TYPE: _stored(TIMESTAMP_TYPE),
    HEADERS: _stored(HEADERS),
    LEDGER_ID: _stored(LEDGER_ID),
    ENTRY_ID: _stored(ENTRY_ID),
    BATCH_INDEX: _stored(BATCH_INDEX),
    EVENT_TIME: _time(EVENT_TIME),
    PASSED_THROUGH: _stored(PASSED_THROUGH),
    METADATA: _stored(METADATA),
}
