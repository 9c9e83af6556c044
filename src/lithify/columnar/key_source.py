"""What the comparisons of the key pass get keys from, and how they say that a part is too large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from lithify.columnar.marks import Integers, MarkSet
from lithify.columnar.ranks import Portion
from lithify.columnar.tally import Tally


class KeySource(Protocol):
    """Where a comparison gets keys from, as batches of `schema`; each portion is read at most once.

    What is found goes to its tally and its marks.
    """

    schema: pa.Schema
    starts: Integers
    tally: Tally
    marks: MarkSet

    def has(self, portion: Portion) -> bool: ...
    def keys(self, portion: Portion) -> Iterator[pa.RecordBatch]: ...


class MemoryExceededError(Exception):
    """The part does not fit into the memory there is."""


def gathered(batches: Iterator[pa.RecordBatch], least_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at least so many bytes, but for the last."""
    pending: list[pa.RecordBatch] = []
    pending_bytes = 0
    for batch in batches:
        pending.append(batch)
        pending_bytes += batch.nbytes
        if pending_bytes >= least_bytes:
            yield pa.concat_batches(pending)
            pending, pending_bytes = [], 0
    if pending:
        yield pa.concat_batches(pending)
