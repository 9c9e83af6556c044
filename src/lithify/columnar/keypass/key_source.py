"""The port through which the key comparison reads keys, and functions over batches of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from lithify.columnar.key_hash import PARTS, HashRange, KeyHash
from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.segment.convert import pieces
from lithify.columnar.segment.dead_records import DeadRecords, Integers
from lithify.columnar.segment.schema import KEY

PICKED_BYTES = 2**20
"""Bytes of keys hashed at a time to select the rows of a part; batches of small segments are concatenated."""

SPARE = 1.15
"""Factor on what keys that are not yet read are expected to need, since parts differ in size."""


class KeySource(Protocol):
    """Provides keys to a comparison as batches of `schema`; each portion is read at most once.

    `tally` and `dead` are of what reading has read and decided without a comparison.
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
    def keys(self, portion: Portion, wanted: pa.Array | None = None) -> Iterator[pa.RecordBatch]:
        """With `wanted`, records of the clean portion that have none of these keys, and remain, may be left out."""
        ...


class KeyResults:
    """The counts and the dead records of some part of the keys. `starts` comes from `ordinal_starts`."""

    def __init__(self, starts: Integers) -> None:
        self.tally = Tally()
        self.dead = DeadRecords(starts)
        self.left: Sequence[HashRange] = ()
        """Ranges of keys that were left out since memory was full, to be read again."""

    def add(self, more: KeyResults | KeySource) -> None:
        """Adds the results of another part, or what reading has decided."""
        self.tally.add(more.tally)
        self.dead.update(more.dead)


class MemoryExceededError(Exception):
    """A part does not fit into the given memory."""


def gathered(batches: Iterator[pa.RecordBatch], least_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of `least_bytes` to twice that; the last may be smaller, a large row larger."""
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


def of_parts(
    batches: Iterator[pa.RecordBatch], parts: Sequence[HashRange], hashes: KeyHash
) -> Iterator[pa.RecordBatch]:
    """The rows whose keys are in one of `parts`."""
    if parts[0].count == 1 and parts[0].parts == PARTS:
        yield from batches
        return
    for batch in gathered(batches, PICKED_BYTES):
        of_rows = hashes(batch.column(KEY))
        yield batch.filter(pa.array(np.any([part.holds(of_rows) for part in parts], axis=0)))
