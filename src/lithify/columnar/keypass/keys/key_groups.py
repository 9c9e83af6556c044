"""Sorts rows by key: the rows of each key together, in their order (C12).

Rows are sorted by hash, and keys that share a hash by the whole key, as in `latest_rows`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.key_hash import HalfHashes
from lithify.columnar.segment.dead_records import Flags, Integers


def grouped(keys: pa.Array, hashes: HalfHashes) -> tuple[Integers, Integers]:
    """Row numbers, each key's together and ascending, and where each key's start in them, then the end.

    int64 both; the second is one longer than there are keys. `hashes` are equal for equal keys; no key is null.
    """
    order: Integers = np.argsort(hashes, kind="stable")
    if len(order) == 0:
        return order, np.zeros(1, np.int64)
    sorted_hashes = hashes[order]
    starts = _starts(sorted_hashes[1:] != sorted_hashes[:-1])
    differs = _differs(keys, order)
    mixed = np.flatnonzero(differs & (sorted_hashes[1:] == sorted_hashes[:-1]))
    if len(mixed) == 0:
        return order, starts
    for run in np.unique(np.searchsorted(starts, mixed, side="right") - 1):
        rows = order[starts[run] : starts[run + 1]]
        by_key = pc.array_sort_indices(keys.take(pa.array(rows)))  # stable
        order[starts[run] : starts[run + 1]] = rows[by_key.to_numpy()]
    return order, _starts(_differs(keys, order))


def _differs(keys: pa.BinaryArray, order: Integers) -> Flags:
    """For each row in this order but the last, whether the next one has another key."""
    ordered = keys.take(pa.array(order))
    return np.asarray(pc.not_equal(ordered[:-1], ordered[1:]), np.bool_)


def _starts(differs: Flags) -> Integers:
    """Where runs start, then the end, from whether each element but the last differs from the next."""
    return np.concatenate([[0], np.flatnonzero(differs) + 1, [len(differs) + 1]]).astype(np.int64)
