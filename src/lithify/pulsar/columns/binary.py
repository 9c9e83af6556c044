"""Arrow columns of bytes from places in a buffer, copied once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lithify.pulsar.columns.fields import Ints, Spans


def binary_of(data: bytes, spans: Spans) -> pa.Array:
    """The pieces of `data`, which must come in ascending order; null where a start is -1.

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
