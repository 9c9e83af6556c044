"""Thrift's compact protocol, as far as Parquet uses it in footers and page headers, to plain values and back.

    struct ──► {field id: value}        list ──► [value, ...]        text and bytes ──► bytes

Used to check Parquet files before Arrow opens them (C51), since Arrow allocates what a file declares and
crashes on some inconsistencies. Every count is compared with the bytes left, and nesting is limited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Struct: TypeAlias = dict[int, Any]
Kind: TypeAlias = "int | Kinds | tuple[Kind]"
Kinds: TypeAlias = Mapping[int, Kind]
"""The fields that a struct may have: by id the kind of each, the fields of a struct, or the one kind of a list."""

MOST_NESTED = 16
"""Limit of nesting; Parquet's structs are nested 6 deep."""
MOST_BITS = 63
"""Largest shift of a varint of 64 bits, at 7 bits per byte."""

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DOUBLE_BYTES = 8


BOOL, I32, I64, BINARY = _TRUE, _I32, _I64, _BINARY


class ThriftError(ValueError):
    """The bytes are not a valid struct."""


def read_struct(data: bytes) -> tuple[Struct, int]:
    """The struct at the start of `data`, and the position after it. Raises `ThriftError`."""
    try:
        return _struct(data, 0, MOST_NESTED)
    except IndexError:
        raise ThriftError("it ends in the middle of a struct") from None


def write_struct(struct: Struct, kinds: Kinds) -> bytes:
    """The one way in which Thrift writes `struct`. Raises `ThriftError` for a field that `kinds` does not have."""
    written = bytearray()
    before = 0
    for field, value in sorted(struct.items()):
        kind = kinds.get(field)
        if kind is None:
            raise ThriftError(f"it has a field {field} that it should not have")
        number = (_TRUE if value else _FALSE) if kind == _TRUE else _number_of(kind)
        written.append((field - before) << 4 | number)
        written += _written(value, kind)
        before = field
    return bytes(written) + b"\0"


def _number_of(kind: Kind) -> int:
    return _STRUCT if isinstance(kind, Mapping) else _LIST if isinstance(kind, tuple) else kind


def _written(value: Any, kind: Kind) -> bytes:
    if isinstance(kind, tuple):
        if not isinstance(value, list):
            raise ThriftError("it has another value in place of a list")
        head = bytes([0xF0 | _number_of(kind[0])]) + _written_varint(len(value))
        return head + b"".join(_written(one, kind[0]) for one in value)
    if isinstance(kind, Mapping):
        if not isinstance(value, dict):
            raise ThriftError("it has another value in place of a struct")
        return write_struct(value, kind)
    if kind == _TRUE and isinstance(value, bool):
        return b""
    if kind == _BINARY and isinstance(value, bytes):
        return _written_varint(len(value)) + value
    if kind in (_I32, _I64) and type(value) is int:
        return _written_varint(value << 1 ^ value >> MOST_BITS)
    raise ThriftError(f"it has another value in place of a value of kind {kind}")


def _written_varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def _struct(data: bytes, at: int, left: int) -> tuple[Struct, int]:
    if not left:
        raise ThriftError(f"its structs are nested more than {MOST_NESTED} deep")
    fields: Struct = {}
    field = 0
    while head := data[at]:
        at += 1
        if step := head >> 4:
            field += step
        else:
            field, at = _zigzag(data, at)
        kind = head & 0x0F
        if _I16 <= kind <= _I64:  # nearly all that there is: one call fewer for each, or two
            if (number := data[at]) < 0x80:
                at += 1
            else:
                number, at = _varint(data, at)
            fields[field] = (number >> 1) ^ -(number & 1)
        elif kind in (_TRUE, _FALSE):
            fields[field] = kind == _TRUE
        else:
            fields[field], at = _value(data, at, kind, left)
    return fields, at + 1


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
        case 1 | 2 | 3:  # in lists, booleans take a byte
            return data[at], at + 1
        case 7:
            return _taken(data, at, _DOUBLE_BYTES)
        case _:
            raise ThriftError(f"it has a value of kind {kind}, which Parquet does not define")


def _list(data: bytes, at: int, left: int) -> tuple[list[Any], int]:
    head = data[at]
    at += 1
    size, kind = head >> 4, head & 0x0F
    if size == 0x0F:
        size, at = _varint(data, at)
    if size > len(data) - at:  # no value takes less than a byte
        raise ThriftError(f"it claims a list of {size} values, but ends before")
    values = []
    for _ in range(size):
        value, at = _value(data, at, kind, left)
        values.append(value)
    return values, at


def _taken(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if size > len(data) - at:
        raise ThriftError(f"it claims {size} bytes of text, but ends before")
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
