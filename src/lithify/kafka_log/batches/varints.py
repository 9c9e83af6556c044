"""Variable-length numbers of many records at once, as the format of records has them.

    number    zigzag: 0 -1 1 -2 2 … become 0 1 2 3 4 …, then 7 bits a byte, the lowest first
    columns   [n₀ m₀] [n₁ m₁] …  ─►  the bytes of n₀ m₀ │ n₁ m₁ │ …       one binary value a record

Of a record the fields that stand together are written together, so that few values are joined afterwards. Most numbers
take one byte or two, which are looked up. Arrays are short, so that what counts is the number of operations on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
_BITS: Final = 7
_MOST_BYTES: Final = 10
_LOOKED_UP: Final = 1 << 2 * _BITS


class Varints:
    """One number of each record; `widths` are their bytes."""

    def __init__(self, numbers: Integers) -> None:
        doubled = numbers << 1
        self._zigzag = (doubled ^ (numbers >> 63)).view(np.uint64)
        largest = int(self._zigzag.max(initial=0))
        self._most = next(n for n in range(1, _MOST_BYTES + 1) if n == _MOST_BYTES or largest < 1 << n * _BITS)
        if largest < _LOOKED_UP:
            self.widths: Integers = _WIDTHS.take(self._zigzag.view(np.int64))
            return
        self.widths = np.ones(len(numbers), np.int64)
        for size in range(1, self._most):
            self.widths += self._zigzag >= np.uint64(1 << size * _BITS)

    def write(self, out: Bytes, at: Integers, *, is_last: bool) -> None:
        """Writes each at its own position. Of those that are not the last, the byte behind them is free."""
        if self._most <= 2:
            codes = _CODES.take(self._zigzag.view(np.int64)).view(np.uint8)
            out[at] = codes[::2]
            if self._most == 2 and not is_last:
                out[at + 1] = codes[1::2]
            elif self._most == 2:
                longer = np.flatnonzero(self.widths > 1)
                out[at[longer] + 1] = codes[1::2][longer]
            return
        for n in range(self._most):
            there = np.flatnonzero(self.widths > n) if n else slice(None)
            bits = (self._zigzag[there] >> np.uint64(n * _BITS)).astype(np.uint8) & 0x7F
            bits |= (self.widths[there] > n + 1).astype(np.uint8) << 7
            out[at[there] + n] = bits


def varints(numbers: Integers) -> Varints | bytes:
    """Numbers of records, of which there is one at least; the bytes of the number that all have."""
    if (numbers == numbers[0]).all():
        return varint(int(numbers[0]))
    return Varints(numbers)


def width_of(field: Varints | bytes) -> Integers | int:
    """The bytes that a field takes, of each record or of all."""
    return len(field) if isinstance(field, bytes) else field.widths


def joined(fields: Sequence[Varints | bytes], records: int, room: Integers | None = None) -> pa.Array | pa.Scalar:
    """For each record a value with these fields; one value, if all records have the same.

    `room` are so many bytes of 0 before the fields of each record.
    """
    if room is None and all(isinstance(field, bytes) for field in fields):
        return pa.scalar(b"".join(field for field in fields if isinstance(field, bytes)), pa.binary())
    widths = np.zeros(records, np.int64) + sum(map(width_of, fields))
    offsets = np.zeros(records + 1, np.int32)
    np.cumsum(widths if room is None else widths + room, out=offsets[1:])
    out: Bytes = np.zeros(int(offsets[-1]), np.uint8)
    at = offsets[1:] - widths
    for n, field in enumerate(fields):
        if isinstance(field, bytes):
            for byte in field:
                out[at] = byte
                at = at + 1
        else:
            field.write(out, at, is_last=n == len(fields) - 1)
            at = at + field.widths
    return pa.Array.from_buffers(pa.binary(), records, [None, pa.py_buffer(offsets), pa.py_buffer(out)])


def varint(number: int) -> bytes:
    """Of one number."""
    left = (number << 1 ^ number >> 63) & 2**64 - 1
    found = bytearray()
    while left >= 1 << _BITS:
        found.append(left & 0x7F | 0x80)
        left >>= _BITS
    return bytes([*found, left])


_NUMBERS = np.arange(_LOOKED_UP)
_WIDTHS: Integers = 1 + (_NUMBERS >= 1 << _BITS)
_CODES = np.where(_WIDTHS > 1, _NUMBERS & 0x7F | 0x80 | _NUMBERS >> _BITS << 8, _NUMBERS).astype("<u2")
"""By zigzag: its bytes, the first one lowest."""
