"""The orders of records as an Arrow column: these decide which record of a key wins (C10).

    strategy    timestamp                 header
    column      timestamp                 headers: the last of the name, if its value has 8 bytes
    order       as it is                  big-endian signed; null where there is none

`compaction.record_order` computes the same for one record.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.segment.positions import Integers
from lithify.compaction.record_order import ORDER_BYTES


def header_orders(headers: pa.ChunkedArray, name: str) -> pa.Array:
    """The order of each record by its header `name`: int64, as long as `headers`, null where there is none."""
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
    found = np.zeros(len(headers), np.int64)
    missing = np.ones(len(headers), np.bool_)
    with_order = records[valid.to_numpy(zero_copy_only=False)]
    found[with_order] = _big_endian(values.filter(valid))
    missing[with_order] = False
    return pa.array(found, mask=missing)


def _big_endian(values: pa.BinaryArray) -> Integers:
    """Decodes values of 8 bytes each, none of them null: int64, as long as `values`."""
    _, ends, payload = values.buffers()
    if not len(values) or payload is None:
        return np.zeros(0, np.int64)
    first = int(np.frombuffer(ends, np.int32)[values.offset])  # values are contiguous
    return np.frombuffer(payload, ">i8", len(values), first).astype(np.int64)
