"""A Parquet file of a few kilobytes whose rows would take gigabytes of memory: all of them name one large value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

VALUE_BYTES = 2**21


def write_bomb(path: Path, schema: pa.Schema, others: Mapping[str, pa.Array], value_bytes: int = VALUE_BYTES) -> None:
    """A file of one row group of this schema; `others` are its columns but for `value`."""
    rows = len(next(iter(others.values())))
    values = pa.DictionaryArray.from_arrays(
        pa.array([0] * rows, pa.int32()), pa.array([b"x" * value_bytes], pa.binary())
    )
    at = schema.get_field_index("value")
    as_written = schema.set(at, schema.field(at).with_type(values.type))
    columns = {**others, "value": values}
    table = pa.table([columns[name] for name in schema.names], schema=as_written)
    pq.write_table(table, path, compression="zstd", store_schema=False, row_group_size=rows)
    assert path.stat().st_size * 1000 < rows * value_bytes
