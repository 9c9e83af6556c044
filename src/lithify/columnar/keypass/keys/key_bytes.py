"""Whole keys, as Arrow gathers and compares them fastest (C12)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.keypass.ranks import Flags


def equal(keys: pa.Array, others: pa.Array) -> Flags:
    """For each pair of keys, whether they are the same: bool. No key is null."""
    return np.asarray(pc.equal(keys, others).to_numpy(zero_copy_only=False), np.bool_)


def joined_keys(some: Sequence[pa.Array]) -> pa.Array:
    """Keys one after the other, of a fixed size if all are of this one."""
    some = [keys for keys in some if len(keys)]
    if some and all(keys.type == some[0].type for keys in some):
        return pa.concat_arrays(some)
    return pa.concat_arrays([pa.array([], pa.binary()), *(keys.cast(pa.binary()) for keys in some)])


def comparable(keys: pa.Array) -> pa.Array:
    """Keys of one length as a fixed-size array, which Arrow gathers in a quarter of the time; else unchanged."""
    if keys.type != pa.binary():
        return keys
    ends = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    width = int(ends[1] - ends[0]) if len(keys) else 0
    if not width or ends[-1] - ends[0] != width * len(keys) or (np.diff(ends) != width).any():
        return keys
    return pa.Array.from_buffers(pa.binary(width), len(keys), [None, keys.buffers()[2].slice(int(ends[0]))])
