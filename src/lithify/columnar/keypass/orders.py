"""The order of records as a column (C10), as `survivor_rules.order_of` says it of one record.

None         all alike: no column is read
ByColumn     the column's number
ByHeader     a big-endian signed number in the last header of that name, null if there is none
"""

from __future__ import annotations

from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.segment.dead_records import Integers
from lithify.columnar.segment.schema import HEADERS
from lithify.model.settings.table import ByColumn, ByHeader
from lithify.rules.compaction.survivor_rules import ORDER_BYTES, SurvivorRules


def order_columns(rules: SurvivorRules) -> tuple[str, ...]:
    """The columns of a segment from which the order is read."""
    match rules.order:
        case None:
            return ()
        case ByColumn(name):
            return (name,)
        case ByHeader():
            return (HEADERS,)


def order_column(table: pa.Table, rules: SurvivorRules) -> Any:
    """The order of each record: int64, null if a record has none, or where its column was not read.

    None if the offset alone decides.
    """
    match rules.order:
        case None:
            return None
        case ByColumn(name):
            return table.column(name)
        case ByHeader(name) if HEADERS in table.column_names:
            return header_orders(table.column(HEADERS), name)
        case ByHeader():
            return pa.nulls(table.num_rows, pa.int64())
        case _:  # what returns Any may end without a return, for all that the type checker says
            assert_never(rules.order)


def header_orders(headers: pa.ChunkedArray, name: str) -> pa.Array:
    """The order of each record by its header `name`: int64, as long as `headers`, null if there is none."""
    chunks = [_of_chunk(chunk, name) for chunk in headers.chunks]
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0, pa.int64())


def _of_chunk(headers: pa.ListArray, name: str) -> pa.Array:
    every = headers.flatten()
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy()
    named = np.flatnonzero(pc.equal(pc.struct_field(every, "key"), name).to_numpy(zero_copy_only=False))
    records = np.repeat(np.arange(len(headers)), counts)[named]
    is_last = np.append(records[1:] != records[:-1], True)[: len(records)]
    records, named = records[is_last], named[is_last]
    values = pc.struct_field(every, "value").take(pa.array(named))
    valid = pc.fill_null(pc.equal(pc.binary_length(values), ORDER_BYTES), False)
    orders = np.zeros(len(headers), np.int64)
    missing = np.ones(len(headers), np.bool_)
    with_order = records[valid.to_numpy(zero_copy_only=False)]
    orders[with_order] = _big_endian(values.filter(valid))
    missing[with_order] = False
    return pa.array(orders, mask=missing)


def _big_endian(values: pa.BinaryArray) -> Integers:
    """Decodes values of 8 bytes each, none of them null: int64, as long as `values`."""
    _, ends, payload = values.buffers()
    if not len(values) or payload is None:
        return np.zeros(0, np.int64)
    first = int(np.frombuffer(ends, np.int32)[values.offset])  # values are contiguous
    return np.frombuffer(payload, ">i8", len(values), first).astype(np.int64)
