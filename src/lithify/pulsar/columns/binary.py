"""Arrow columns of bytes from places in a buffer, copied once."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from lithify.pulsar.columns.fields import Ints, Spans


def binary_of(data: bytes, spans: Spans) -> pa.Array:
    """The pieces of `data`, which must come in ascending order; null if a start is -1.

    Arrow reads starts and ends in turn as the offsets of twice as many values, of which each second one is kept.
    """
    count = len(spans.start)
    if not count:
        return pa.array([], pa.binary())
    missing = spans.start < 0
    end = np.maximum.accumulate(np.where(missing, 0, spans.start + spans.size))
    offsets = np.empty(2 * count, np.int32)
    offsets[0::2] = np.where(missing, end, spans.start)
    offsets[1::2] = end
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    both = pa.Array.from_buffers(pa.binary(), 2 * count - 1, buffers)
    each: Ints = np.arange(0, 2 * count, 2)
    return both.take(pa.array(each, mask=missing))


def in_order(parts: list[pa.Array], order: Ints) -> pa.Array:
    """The values of all parts in another order."""
    whole = [part for part in parts if len(part)]
    if len(whole) < 2:
        return whole[0] if whole else pa.array([], pa.binary())
    return pa.concat_arrays(whole).take(pa.array(order))


def numbers_as_fields(tag: int, numbers: Ints) -> pa.Array:
    """Each number as protobuf writes a field with it; nothing for a negative one. `tag` is one byte."""
    columns = np.arange(_GROUPS)
    groups = numbers[:, None] >> (7 * columns)
    size = np.maximum(1, np.count_nonzero(groups, axis=1))
    encoded = np.empty((len(numbers), 1 + _GROUPS), np.uint8)
    encoded[:, 0] = tag
    encoded[:, 1:] = (groups & 0x7F) | np.where(columns < size[:, None] - 1, 0x80, 0)
    size = np.where(numbers < 0, 0, 1 + size)
    data = encoded[np.arange(1 + _GROUPS) < size[:, None]]
    offsets = np.append(0, np.cumsum(size)).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


_GROUPS: Final = 9
"""Of 7 bits, in 63."""
