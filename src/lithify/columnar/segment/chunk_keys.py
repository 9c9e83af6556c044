"""Whole entries of Pulsar among the rows of a segment: which of them are chunks, and of which keys (C53)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lithify.columnar.segment.schema import METADATA, PASSED_THROUGH
from lithify.model.message import Chunk, chunk_of

CHUNK_KEY = "chunk_key"
"""The name of the column of these keys where there is one."""


def chunk_keys(table: pa.Table) -> pa.ChunkedArray:
    """For each row the key of the message that it is a chunk of: null for all others, and for one without a key.

    `table` has `passed_through` and `metadata`.
    """
    keys: list[bytes | None] = [None] * table.num_rows
    for row, chunk in _entries(table):
        keys[row] = None if chunk is None else chunk.key
    return pa.chunked_array([pa.array(keys, pa.binary())])


def has_only_chunks(table: pa.Table) -> bool | None:
    """Whether all whole entries are chunks; None if there are none."""
    are_chunks = [chunk is not None for _, chunk in _entries(table)]
    return all(are_chunks) if are_chunks else None


def _entries(table: pa.Table) -> Iterator[tuple[int, Chunk | None]]:
    """The rows of whole entries, and what each is a chunk of."""
    passed = table.column(PASSED_THROUGH)
    if passed.null_count == len(passed):
        return
    rows = np.flatnonzero(passed.is_valid().to_numpy())
    metadata = table.column(METADATA).take(pa.array(rows)).to_pylist()
    yield from zip(rows.tolist(), map(chunk_of, metadata), strict=True)
