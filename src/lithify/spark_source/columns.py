"""The schema of Spark's Kafka source, and the conversion of segments to it.

    segment          partition offset timestamp  timestamp_type  key value headers   (+ the topic's name)
    Spark      topic partition offset timestamp  timestampType   key value headers
                                      (ms ► µs, UTC)

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
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lithify.columnar.segment.schema import HEADERS, KEY, OFFSET, PARTITION, TIMESTAMP, TIMESTAMP_TYPE, VALUE
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
    ]
)
BATCH_RECORDS = 16 * 1024
"""Records per Arrow batch that is sent to the JVM."""

_STORED = {KAFKA_TIMESTAMP_TYPE: TIMESTAMP_TYPE}


def schema_of(columns: Sequence[str] | None, *, include_headers: bool) -> StructType:
    """The schema of a read: the named columns, else all, `headers` only with `includeHeaders`.

    Raises `RefusedError` for an unknown or duplicate column.
    """
    if columns is None:
        columns = [name for name in SCHEMA.names if include_headers or name != HEADERS]
    for name in columns:
        if name not in SCHEMA.names:
            raise RefusedError(f"columns: there is no column {name!r}", hint=f"known: {', '.join(SCHEMA.names)}")
        if list(columns).count(name) > 1:
            raise RefusedError(f"columns: {name!r} is named twice")
    return StructType([SCHEMA[name] for name in columns])


def check_schema(schema: StructType) -> None:
    """Raises `RefusedError` if a user's schema has an unknown column or another type."""
    for field in schema.fields:
        if field.name not in SCHEMA.names:
            raise RefusedError(
                f"the schema has a column {field.name!r}, which there is not", hint=f"known: {', '.join(SCHEMA.names)}"
            )
        known = SCHEMA[field.name].dataType
        if field.dataType.simpleString() != known.simpleString():
            raise RefusedError(
                f"the schema has {field.name} as {field.dataType.simpleString()}, it is {known.simpleString()}"
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
    def take(table: pa.Table, _topic: str, kind: pa.DataType) -> pa.ChunkedArray:
        return table.column(column).cast(kind)

    return take


def _topic(table: pa.Table, topic: str, kind: pa.DataType) -> pa.Array:
    return pa.repeat(pa.scalar(topic, kind), table.num_rows)


def _timestamp(table: pa.Table, topic: str, kind: pa.DataType) -> pa.ChunkedArray:
    try:
        return pc.multiply_checked(table.column(TIMESTAMP), 1000).cast(kind)
    except pa.ArrowInvalid:
        raise LithifyError(
            f"{topic}: a timestamp is beyond what Spark's TIMESTAMP can hold, some 292,000 years from 1970",
            hint="read without the column timestamp: .option('columns', 'key,value,partition,offset')",
        ) from None


_CONVERSIONS: dict[str, _Conversion] = {
    KEY: _stored(KEY),
    VALUE: _stored(VALUE),
    TOPIC: _topic,
    PARTITION: _stored(PARTITION),
    OFFSET: _stored(OFFSET),
    TIMESTAMP: _timestamp,
    KAFKA_TIMESTAMP_TYPE: _stored(TIMESTAMP_TYPE),
    HEADERS: _stored(HEADERS),
}
