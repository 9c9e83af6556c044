"""Thrift's compact protocol, as far as Parquet uses it: the structs of footers and page headers, as plain values.

    struct ──► {field id: value}        list ──► [value, ...]        text and bytes ──► bytes

Parquet files are checked with this before Arrow opens them (C51): Arrow allocates what a file claims to
need, and ends the process for some claims that contradict each other. So every count is held against
the bytes that are there, and nesting has an end.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Struct: TypeAlias = dict[int, Any]

MOST_NESTED = 16
"""Parquet's own structs are nested 6 deep."""
MOST_BITS = 63
"""Shifts of a number of 64 bits, which comes 7 bits in a byte."""

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DOUBLE_BYTES = 8


class ThriftError(ValueError):
    """Bytes that are no struct."""


def read_struct(data: bytes, start: int = 0) -> tuple[Struct, int]:
    """The struct that begins at `start`, and where it ends. Raises `ThriftError`."""
    try:
        return _struct(data, start, MOST_NESTED)
    except IndexError:
        raise ThriftError("it ends in the middle of a struct") from None


def _struct(data: bytes, at: int, left: int) -> tuple[Struct, int]:
    if not left:
        raise ThriftError(f"its structs are nested more than {MOST_NESTED} deep")
    found: Struct = {}
    field = 0
    while head := data[at]:
        at += 1
        if step := head >> 4:
            field += step
        else:
            field, at = _zigzag(data, at)
        kind = head & 0x0F
        if kind in (_TRUE, _FALSE):
            found[field] = kind == _TRUE
        else:
            found[field], at = _value(data, at, kind, left)
    return found, at + 1


def _value(data: bytes, at: int, kind: int, left: int) -> tuple[Any, int]:
    match kind:
        case 5 | 6 | 4:  # numbers of 32, 64 and 16 bits
            return _zigzag(data, at)
        case 8:
            size, at = _varint(data, at)
            return _taken(data, at, size)
        case 12:
            return _struct(data, at, left - 1)
        case 9 | 10:
            return _list(data, at, left - 1)
        case 1 | 2 | 3:  # in lists flags take a byte as well
            return data[at], at + 1
        case 7:
            return _taken(data, at, _DOUBLE_BYTES)
        case _:
            raise ThriftError(f"it has a value of kind {kind}, which Parquet has no use for")


def _list(data: bytes, at: int, left: int) -> tuple[list[Any], int]:
    head = data[at]
    at += 1
    size, kind = head >> 4, head & 0x0F
    if size == 0x0F:
        size, at = _varint(data, at)
    if size > len(data) - at:  # no value takes less than a byte
        raise ThriftError(f"it claims a list of {size} values, and ends before")
    found = []
    for _ in range(size):
        value, at = _value(data, at, kind, left)
        found.append(value)
    return found, at


def _taken(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if size > len(data) - at:
        raise ThriftError(f"it claims {size} bytes of text, and ends before")
    return data[at : at + size], at + size


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    return (number >> 1) ^ -(number & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = data[at]
    at += 1
    if number < 0x80:
        return number, at
    number &= 0x7F
    shift = 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > MOST_BITS:
            raise ThriftError("it has a number of more than 64 bits")
