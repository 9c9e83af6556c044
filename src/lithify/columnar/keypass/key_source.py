"""What the comparison of keys gets them from, and how it says that a part is too large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keys.hash_range import HashRange
from lithify.columnar.keys.key_hash import KeyHash
from lithify.columnar.keys.ranks import Portion
from lithify.columnar.segment.positions import DeadRecords, Integers
from lithify.columnar.segment.schema import KEY

PICKED_BYTES = 2**20
"""So much is hashed at a time to pick the rows of a part: batches of small segments are small."""


class KeySource(Protocol):
    """Where a comparison gets keys from, as batches of `schema`; each portion is read at most once.

    What is found goes to its tally and its dead records.
    """

    schema: pa.Schema
    starts: Integers
    tally: Tally
    dead: DeadRecords

    @property
    def dirty_read(self) -> float:
        """The share of the dirty portion that was read, from 0 to 1."""
        ...

    def has(self, portion: Portion) -> bool: ...
    def keys(self, portion: Portion) -> Iterator[pa.RecordBatch]: ...


class MemoryExceededError(Exception):
    """The part does not fit into the memory there is."""


def pieces(batches: Iterator[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of no more than so many bytes, or of one row that is larger."""
    for batch in batches:
        pending = [batch]
        while pending:
            piece = pending.pop()
            if piece.nbytes <= most_bytes or piece.num_rows == 1:
                yield piece
            else:
                half = piece.num_rows // 2
                pending += [piece.slice(half), piece.slice(0, half)]


def gathered(batches: Iterator[pa.RecordBatch], least_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at least so many bytes, but for the last, and less than twice as many."""
    pending: list[pa.RecordBatch] = []
    pending_bytes = 0
    for batch in pieces(batches, least_bytes):
        pending.append(batch)
        pending_bytes += batch.nbytes
        if pending_bytes >= least_bytes:
            yield pa.concat_batches(pending)
            pending, pending_bytes = [], 0
    if pending:
        yield pa.concat_batches(pending)


def of_part(batches: Iterator[pa.RecordBatch], part: HashRange, hashes: KeyHash) -> Iterator[pa.RecordBatch]:
    """The rows whose keys are in a part of what there is."""
    if part.count == 1:
        yield from batches
        return
    for batch in gathered(batches, PICKED_BYTES):
        yield batch.filter(pa.array(part.holds(hashes(batch.column(KEY)))))
