"""Converts the columns that producers give, of various Arrow types, to the columns of a segment.

    given                                                     becomes
    key, value       binary or string, large, view, ...       binary
    timestamp        integer (epoch ms) or timestamp          int64
    partition, timestamp_type, offset   integer               int32, int32, int64
    headers          list of (key, value) structs, list of    list of structs, as SEGMENT_SCHEMA
                     pairs, or map                            has it; empty becomes null

Only `key` and `value` are required. A topic with Pulsar's message ids takes their columns as well, with the types
of a segment. This module checks types; `incoming` checks the rules of admission.
Pieces are small enough that no column reaches Arrow's limit of 2 GiB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.segment.convert import envelope_columns, pieces, to_table
from lithify.columnar.segment.schema import (
    BATCH_INDEX,
    ENTRY_ID,
    ENVELOPE_COLUMNS,
    ENVELOPE_SCHEMA,
    EVENT_TIME,
    HEADER_TYPE,
    HEADERS,
    HEADERS_TYPE,
    KEY,
    LEDGER_ID,
    METADATA,
    OFFSET,
    PARTITION,
    PASSED_THROUGH,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    VALUE_SIZE,
)
from lithify.errors import InvalidInputError, InvalidRecordError
from lithify.model.record import Record
from lithify.model.settings.topic_settings import TopicSettings
from lithify.rules.lifecycle.admission import UNWANTED_MESSAGE_ID

GIVEN_SCHEMA = pa.schema(
    [
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        (TIMESTAMP, pa.int64()),
        (TIMESTAMP_TYPE, pa.int32()),
        (KEY, pa.binary()),
        (VALUE, pa.binary()),
        (HEADERS, HEADERS_TYPE),
    ]
)

GIVEN_ENVELOPES = pa.schema(
    [*GIVEN_SCHEMA, *(ENVELOPE_SCHEMA.field(name).with_nullable(True) for name in ENVELOPE_COLUMNS)]
)
"""The same for a topic with Pulsar's message ids."""

_IGNORED = (VALUE_SIZE,)  # a table read from a segment has it; it is computed again
_PIECE_RECORDS = 128 * 1024
_PIECE_BYTES = 2**30

Given: TypeAlias = Sequence[Record] | pa.Table | pa.RecordBatch


def given_schema(settings: TopicSettings) -> pa.Schema:
    """The columns that producers may give to a topic."""
    return GIVEN_ENVELOPES if settings.message_ids == "pulsar" else GIVEN_SCHEMA


def given_batches(batch: Given, schema: pa.Schema = GIVEN_SCHEMA) -> Iterator[pa.RecordBatch]:
    """The records of `batch`, in order, in pieces with the columns of `schema`.

    A column that is not given is all null. Raises `InvalidInputError` for wrong columns or types,
    `InvalidRecordError` for an object that is not a record.
    """
    table = _as_table(batch, schema)
    check_columns(table.schema, schema)
    for large in table.to_batches(max_chunksize=_PIECE_RECORDS):
        if large.num_rows:
            yield from (_converted(piece, schema) for piece in pieces([large], _PIECE_BYTES))


def check_columns(schema: pa.Schema, accepted: pa.Schema = GIVEN_SCHEMA) -> None:
    """Raises `InvalidInputError` if columns are missing, unknown or duplicated."""
    names = schema.names
    unknown = [n for n in names if n not in accepted.names and n not in _IGNORED]
    if unknown:
        raise InvalidInputError(f"unknown column {unknown[0]!r}", hint=f"the columns are {', '.join(accepted.names)}")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InvalidInputError(f"the column {twice[0]!r} is given twice")
    for needed in (KEY, VALUE):
        if needed not in names:
            raise InvalidInputError(f"there is no column {needed!r}", hint="records need the columns key and value")


def check_types(schema: pa.Schema) -> None:
    """Raises `InvalidInputError` if columns are wrong, or of types that are not accepted, whatever is in them."""
    check_columns(schema)
    columns = [pa.nulls(0, field.type) for field in schema]
    _converted(pa.RecordBatch.from_arrays(columns, schema=schema), GIVEN_SCHEMA)


def refused_record(index: int, reason: str) -> InvalidRecordError:
    """The error for the record at `index` of its batch."""
    error = InvalidRecordError(
        f"the record at index {index} of the batch is refused: {reason}", hint="the whole batch was refused"
    )
    error.index, error.reason = index, reason
    return error


def _as_table(batch: Given, schema: pa.Schema) -> pa.Table:
    if isinstance(batch, pa.Table):
        return batch
    if isinstance(batch, pa.RecordBatch):
        return pa.Table.from_batches([batch])
    records = list(batch)
    if schema is GIVEN_SCHEMA:
        index = next((n for n, r in enumerate(records) if isinstance(r, Record) and r.envelope is not None), None)
        if index is not None:
            raise refused_record(index, UNWANTED_MESSAGE_ID)
    try:
        return _table_of(records, schema)
    except _BAD_RECORD:
        for index, record in enumerate(records):
            try:
                _table_of([record], schema)
            except _BAD_RECORD as error:
                raise refused_record(index, f"it is not a record: {' '.join(str(error).split())}") from None
        raise


_BAD_RECORD = (pa.ArrowException, TypeError, ValueError, AttributeError, OverflowError)


def _table_of(records: Sequence[Record], schema: pa.Schema) -> pa.Table:
    table = to_table(records)
    if schema is not GIVEN_SCHEMA:
        for name, column in envelope_columns(records).items():
            table = table.append_column(schema.field(name), column)
    return table


def _converted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = []
    for field in schema:
        if field.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(field.name)
        try:
            columns.append(_CONVERSIONS[field.name](column, field.type))
        except (pa.ArrowException, TypeError) as error:
            reason = " ".join(str(error).split())
            raise InvalidInputError(
                f"the column {field.name!r} of type {column.type} is not accepted: {reason}"
            ) from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _to_binary(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    if pa.types.is_dictionary(column.type):
        return _to_binary(column.dictionary_decode(), kind)
    if pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type):
        column = column.take(pa.array(np.arange(len(column))))  # a slice cannot be cast: its offsets are too large
    if not any(is_kind(column.type) for is_kind in _BYTES):
        raise TypeError("it must be binary or string")
    return column.cast(kind)


_BYTES = (
    pa.types.is_string,
    pa.types.is_large_binary,
    pa.types.is_large_string,
    pa.types.is_binary_view,
    pa.types.is_string_view,
    pa.types.is_fixed_size_binary,
    pa.types.is_binary,
    pa.types.is_null,
)


def _to_integer(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise TypeError("it must be an integer")
    return column.cast(kind)


def _to_flag(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not (pa.types.is_boolean(column.type) or pa.types.is_null(column.type)):
        raise TypeError("it must be boolean")
    return pc.if_else(column.cast(kind), True, pa.scalar(None, kind))  # false is null


def _to_epoch_ms(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        in_ms = pc.CastOptions(pa.timestamp("ms", column.type.tz), allow_time_truncate=True)
        return column.cast(options=in_ms).cast(kind)
    return _to_integer(column, kind)


def _to_headers(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_null(column.type):
        return column.cast(kind)
    if pa.types.is_map(column.type):
        pair = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
        column = column.cast(pa.list_(pair))
    if not _is_list(column.type):
        raise TypeError("it must be a list of (key, value)")
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    names, values = _pairs(column.flatten())
    headers = pa.StructArray.from_arrays(
        [_to_binary(names, pa.binary()).cast(pa.string()), _to_binary(values, pa.binary())], fields=list(HEADER_TYPE)
    )
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), headers, type=kind, mask=pa.array(counts == 0))


def _pairs(headers: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Names and values of headers, each as long as `headers`: structs (key, value) or lists of two."""
    kind: Any = headers.type
    if pa.types.is_struct(kind):
        if sorted(f.name for f in kind) != ["key", "value"]:
            raise TypeError("its structs must have the fields key and value")
        return pc.struct_field(headers, "key"), pc.struct_field(headers, "value")
    if (
        not _is_list(kind)
        or not pc.all(pc.equal(pc.list_value_length(headers), 2), skip_nulls=False, min_count=0).as_py()
    ):
        raise TypeError("every header must be a (key, value)")
    flat = headers.flatten()
    places = np.arange(0, len(flat), 2)
    return flat.take(pa.array(places)), flat.take(pa.array(places + 1))


def _is_list(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


_CONVERSIONS = {
    PARTITION: _to_integer,
    OFFSET: _to_integer,
    TIMESTAMP: _to_epoch_ms,
    TIMESTAMP_TYPE: _to_integer,
    KEY: _to_binary,
    VALUE: _to_binary,
    HEADERS: _to_headers,
    LEDGER_ID: _to_integer,
    ENTRY_ID: _to_integer,
    BATCH_INDEX: _to_integer,
    EVENT_TIME: _to_integer,
    PASSED_THROUGH: _to_flag,
    METADATA: _to_binary,
}
