"""Finds the last row of each key: sorts hashes, then compares whole keys (C12).

    hash        9f.. 03.. 9f.. 41..              row      0  1  2  3
    hash | row  03..|1  41..|3  9f..|0  9f..|2   sorted: rows of one key are adjacent, in row order
    keys        of adjacent rows with equal hashes are compared; where they differ, the run is sorted by key

One sort of integers and one comparison for each key that may occur twice: a third of the time of a hash
table when most keys are unique, and no slower when few are. Keys that share a hash cost at most their
sort (C38).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.keypass.key_hash import Hashes
from lithify.columnar.keypass.ranks import Flags
from lithify.columnar.segment.dead_records import Integers

BYTES_PER_ROW = 14
"""Bytes of memory that `latest_rows` needs per row, besides its arguments."""

BYTES_PER_ORDERED_ROW = 31
"""The same with `order`, including the memory to compute it."""

_BLOCK = 1 << 16
"""Rows compared at a time, so that their gathered keys fit into the processor's cache."""


def latest_rows(keys: pa.BinaryArray, hashes: Hashes, order: Integers | None = None) -> Flags:
    """For each row, whether no later row has the same key: bool, as long as `keys`.

    `order`, a permutation of the row numbers (int64), says which row is later; without it rows are in order.
    `hashes` (uint64, one per row, equal for equal keys) may be overwritten and sorted in place. No key is null.
    """
    count = len(hashes)
    low = np.uint64((1 << count.bit_length()) - 1)
    if order is not None:
        hashes = hashes[order]
    hashes &= ~low  # dropping bits only adds collisions, which are compared whole
    np.bitwise_or(hashes, np.arange(count, dtype=np.uint32), out=hashes)
    hashes.sort()
    last = np.ones(count, np.bool_)
    comparable = _comparable(keys)
    apart: list[Hashes] = []
    for start in range(0, count - 1, _BLOCK):
        block = hashes[start : start + _BLOCK + 1]
        follows = (block[:-1] ^ block[1:]) <= low  # rows whose next row may have the same key
        rows = _rows(block, low, order)
        last[rows[:-1][follows]] = False
        apart.append(block[:-1][_differ(comparable, rows, follows)])
    if any(map(len, apart)):
        mixed = _rows(_runs_of(np.concatenate(apart), hashes, low), low, order)
        last[mixed] = False
        last[_last_of_each_key(keys, mixed)] = True
    return last


def _rows(some: Hashes, low: np.uint64, order: Integers | None) -> Integers:
    places = (some & low).view(np.int64)
    return places if order is None else order[places]


def _last_of_each_key(keys: pa.BinaryArray, rows: Integers) -> Integers:
    """The last of `rows` for each key; rows of one key must be in order. Row numbers, int64."""
    mixed = keys.take(pa.array(rows))
    by_key = pc.array_sort_indices(mixed)  # stable
    mixed = mixed.take(by_key)
    ends = np.append(np.asarray(pc.not_equal(mixed[:-1], mixed[1:]), np.bool_), True)
    last: Integers = rows[by_key.to_numpy()[ends]]
    return last


def _differ(keys: pa.Array, rows: Integers, follows: Flags) -> Integers:
    """Positions in `rows` where the next row's key differs although `follows` says that the hashes agree."""
    shared = np.append(follows, False)
    shared[1:] |= follows
    at = np.flatnonzero(shared)
    gathered = keys.take(pa.array(rows[at]))
    differs = np.asarray(pc.not_equal(gathered[:-1], gathered[1:]), np.bool_)
    here = at[:-1]
    return here[differs & follows[here]]


def _runs_of(some: Hashes, ordered: Hashes, low: np.uint64) -> Hashes:
    """All of the sorted `ordered` whose upper bits agree with one of `some`, each run in order."""
    firsts = np.unique(some & ~low)
    starts, ends = np.searchsorted(ordered, firsts), np.searchsorted(ordered, firsts | low, side="right")
    return np.concatenate([ordered[start:end] for start, end in zip(starts, ends, strict=True)])


def _comparable(keys: pa.BinaryArray) -> pa.Array:
    """Keys of one length as a fixed-size array, which Arrow gathers in a quarter of the time; else unchanged."""
    ends = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    width = int(ends[1] - ends[0]) if len(keys) else 0
    if not width or ends[-1] - ends[0] != width * len(keys) or (np.diff(ends) != width).any():
        return keys
    return pa.Array.from_buffers(pa.binary(width), len(keys), [None, keys.buffers()[2].slice(int(ends[0]))])
