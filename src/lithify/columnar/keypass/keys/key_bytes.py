"""Whole keys, as Arrow gathers and compares them fastest (C12)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.keypass.ranks import Flags
from lithify.columnar.segment.dead_records import Integers

GATHERED_BYTES = 2**20
"""Bytes of keys that are gathered at a time to be compared, or one key."""


def equal(keys: pa.Array, others: pa.Array) -> Flags:
    """For each pair of keys, whether they are the same: bool. No key is null."""
    return np.asarray(pc.equal(keys, others).to_numpy(zero_copy_only=False), np.bool_)


def equal_at(keys: pa.Array, rows: Integers, others: pa.Array, numbers: Integers) -> Flags:
    """For each of the rows of `keys`, whether it is the key in `others` with the number: bool. No key is null.

    Of keys that differ in size none is gathered: one that is long may be looked up for any number of short ones.
    """
    if keys.type == others.type != pa.binary():
        return _equal_of_size(keys, rows, others, numbers)
    alike = np.flatnonzero(_sizes(keys, rows) == _sizes(others, numbers))
    same = np.zeros(len(rows), np.bool_)
    same[alike] = _equal_of_size(keys, rows[alike], others, numbers[alike])
    return same


def _equal_of_size(keys: pa.Array, rows: Integers, others: pa.Array, numbers: Integers) -> Flags:
    """The same for pairs of keys of one size."""
    same = np.zeros(len(rows), np.bool_)
    step = max(1, GATHERED_BYTES * len(keys) // max(1, keys.nbytes))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        ours, theirs = keys.take(pa.array(rows[some])), others.take(pa.array(numbers[some]))
        if ours.type != theirs.type:  # keys of one size, and others
            ours, theirs = _of_any_size(ours), _of_any_size(theirs)
        same[some] = equal(ours, theirs)
    return same


def joined_keys(some: Sequence[pa.Array]) -> pa.Array:
    """Keys one after the other, of a fixed size if all are of this one."""
    some = [keys for keys in some if len(keys)]
    if some and all(keys.type == some[0].type for keys in some):
        return pa.concat_arrays(some)
    return pa.concat_arrays([pa.array([], pa.binary()), *map(_of_any_size, some)])


def comparable(keys: pa.Array) -> pa.Array:
    """Keys of one length as a fixed-size array, which Arrow gathers in a quarter of the time; else unchanged."""
    if keys.type != pa.binary():
        return keys
    ends = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    width = int(ends[1] - ends[0]) if len(keys) else 0
    if not width or ends[-1] - ends[0] != width * len(keys) or (np.diff(ends) != width).any():
        return keys
    return pa.Array.from_buffers(pa.binary(width), len(keys), [None, keys.buffers()[2].slice(int(ends[0]))])


def _of_any_size(keys: pa.Array) -> pa.Array:
    """The same keys as a binary array, not copied; a cast would copy the whole buffer of which they are a slice."""
    if keys.type == pa.binary():
        return keys
    width = keys.type.byte_width
    ends = pa.array(np.arange(len(keys) + 1) * width, pa.int32())  # an error beyond 2 GiB
    data = keys.buffers()[1].slice(keys.offset * width)
    return pa.Array.from_buffers(pa.binary(), len(keys), [None, ends.buffers()[1], data])


def _sizes(keys: pa.Array, rows: Integers) -> Integers:
    """The sizes of these rows' keys in bytes."""
    if keys.type != pa.binary():
        return np.full(len(rows), keys.type.byte_width, np.int64)
    ends = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset :]
    return ends[1:][rows] - ends[rows]
