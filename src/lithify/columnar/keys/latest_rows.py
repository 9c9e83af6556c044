"""Which rows are the last of their key: hashes sorted, then whole keys compared (C12).

    hash        9f.. 03.. 9f.. 41..              row      0  1  2  3
    hash | row  03..|1  41..|3  9f..|0  9f..|2   sorted: rows of one key are neighbours, in their order
    keys        of neighbours whose hashes agree: equal in truth, or all of their run are sorted by key

One sort of plain numbers and one look at each key that may be there twice: a third of the time of a hash
table when most keys are there once, and no slower when few are. However many keys share a hash, it takes
no more than to sort them (C38).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.keys.key_hash import Hashes
from lithify.columnar.keys.ranks import Flags
from lithify.columnar.segment.positions import Integers

BYTES_PER_ROW = 14
"""Bytes of memory that `latest_rows` takes for a row, besides its arguments."""

BYTES_PER_ORDERED_ROW = 31
"""The same where rows have an order of their own, with making it."""

_BLOCK = 1 << 16
"""Rows compared at a time, so that their gathered keys stay in a processor's cache."""


def latest_rows(keys: pa.BinaryArray, hashes: Hashes, order: Integers | None = None) -> Flags:
    """Which of the rows no later one has the same key as; later in `order`, if it has one, an order of all rows.

    Uses `hashes` up. No key is null; equal keys have equal hashes.
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
        follows = (block[:-1] ^ block[1:]) <= low  # a row whose successor in this order may have its key
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
    """Of rows, those of one key in their order, the last ones of each key."""
    mixed = keys.take(pa.array(rows))
    by_key = pc.array_sort_indices(mixed)  # which leaves those of one key in their order
    mixed = mixed.take(by_key)
    ends = np.append(np.asarray(pc.not_equal(mixed[:-1], mixed[1:]), np.bool_), True)
    last: Integers = rows[by_key.to_numpy()[ends]]
    return last


def _differ(keys: pa.Array, rows: Integers, follows: Flags) -> Integers:
    """The places of the rows that have another key than their successor, though their hashes agree."""
    shared = np.append(follows, False)
    shared[1:] |= follows
    at = np.flatnonzero(shared)
    gathered = keys.take(pa.array(rows[at]))
    differs = np.asarray(pc.not_equal(gathered[:-1], gathered[1:]), np.bool_)
    here = at[:-1]
    return here[differs & follows[here]]


def _runs_of(some: Hashes, ordered: Hashes, low: np.uint64) -> Hashes:
    """All whose upper bits agree with one of `some`, those of one run in their order."""
    firsts = np.unique(some & ~low)
    starts, ends = np.searchsorted(ordered, firsts), np.searchsorted(ordered, firsts | low, side="right")
    return np.concatenate([ordered[start:end] for start, end in zip(starts, ends, strict=True)])


def _comparable(keys: pa.BinaryArray) -> pa.Array:
    """Keys that are all of one length as an array of that width: Arrow gathers those in a quarter of the time."""
    ends = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    width = int(ends[1] - ends[0]) if len(keys) else 0
    if not width or ends[-1] - ends[0] != width * len(keys) or (np.diff(ends) != width).any():
        return keys
    return pa.Array.from_buffers(pa.binary(width), len(keys), [None, keys.buffers()[2].slice(int(ends[0]))])
