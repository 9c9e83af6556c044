"""Functions that read a layout in one version, made once from its fields.

A reader takes the bytes of a frame and a place in them, and returns the value and the place after it. Neighbors of
fixed size are read by one `struct`. No length that a frame states is believed beyond the bytes that it has.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from lithify.kafka_protocol.table import ARRAY, STRUCT, Field

Reader = Callable[[bytes, int], tuple[Any, int]]
_Step = Callable[[bytes, int, dict[str, Any]], int]

FIXED: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""Types of fixed size, as `struct` names them."""
_LENGTH16, _LENGTH32 = struct.Struct(">h").unpack_from, struct.Struct(">i").unpack_from
_VARINT_BITS: Final = 35


class MalformedError(ValueError):
    """Bytes that do not have the layout of the request or response that they should be."""


def struct_reader(fields: Sequence[Field], version: int, *, flexible: bool) -> Reader:
    """A reader of all fields, as a dict."""
    present = [field for field in fields if field.is_in(version)]
    plain = [field for field in present if field.tag is None]
    steps: list[_Step] = []
    for is_fixed, found in groupby(plain, lambda field: field.kind in FIXED):
        run = list(found)
        steps += [_fixed(run)] if is_fixed else [_one(field, version, flexible) for field in run]
    defaults = {field.name: field.default for field in present if field.tag is not None}
    if flexible:
        tags = {field.tag: (field.name, _value(field, version, True)) for field in present if field.tag is not None}
        steps.append(_tagged(tags))

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        value = dict(defaults)
        for step in steps:
            at = step(data, at, value)
        return value, at

    return read


def unsigned(data: bytes, at: int) -> tuple[int, int]:
    """A number of up to five bytes, of seven bits each, the lowest first."""
    byte, value, shift = data[at], 0, 0
    while byte > 0x7F:
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if shift >= _VARINT_BITS:
            raise MalformedError("a length has more than five bytes")
        byte = data[at]
    return value | byte << shift, at + 1


def _fixed(fields: Sequence[Field]) -> _Step:
    names = tuple(field.name for field in fields)
    layout = struct.Struct(">" + "".join(FIXED[field.kind] for field in fields))
    unpack, size = layout.unpack_from, layout.size

    def step(data: bytes, at: int, value: dict[str, Any]) -> int:
        value.update(zip(names, unpack(data, at), strict=True))
        return at + size

    return step


def _one(field: Field, version: int, flexible: bool) -> _Step:
    name, read = field.name, _value(field, version, flexible)

    def step(data: bytes, at: int, value: dict[str, Any]) -> int:
        value[name], at = read(data, at)
        return at

    return step


def _tagged(tags: Mapping[int, tuple[str, Reader]]) -> _Step:
    def step(data: bytes, at: int, value: dict[str, Any]) -> int:
        count, at = unsigned(data, at)
        for _ in range(count):
            tag, at = unsigned(data, at)
            size, at = unsigned(data, at)
            if tag in tags:
                name, read = tags[tag]
                value[name], _ = read(data, at)
            at += size  # also past what is not known
            _check_within(data, at)
        return at

    return step


def _value(field: Field, version: int, flexible: bool) -> Reader:
    """A reader of one value of that type."""
    nullable = field.may_be_null(version)
    if field.kind.startswith(ARRAY):
        return _array(_element(field, version, flexible), _length(flexible, wide=True), nullable)
    if field.kind == STRUCT:
        return _element(field, version, flexible) if not nullable else _perhaps(_element(field, version, flexible))
    if field.kind in FIXED:
        return _element(field, version, flexible)
    return _sized(_length(flexible, wide=field.kind != "string"), nullable, is_text=field.kind == "string")


def _element(field: Field, version: int, flexible: bool) -> Reader:
    """A reader of an element of an array, or of a value that has no other length than its type."""
    kind = field.kind.removeprefix(ARRAY)
    if kind == STRUCT:
        return struct_reader(field.fields, version, flexible=flexible)
    if kind == "string":
        return _sized(_length(flexible, wide=False), False, is_text=True)
    layout = struct.Struct(">" + FIXED[kind])
    unpack, size = layout.unpack_from, layout.size

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return unpack(data, at)[0], at + size

    return read


def _length(flexible: bool, *, wide: bool) -> Reader:
    """A reader of a length, -1 for null. In flexible versions it is stored plus one."""
    if flexible:

        def short(data: bytes, at: int) -> tuple[int, int]:
            length, at = unsigned(data, at)
            return length - 1, at

        return short
    unpack, size = (_LENGTH32, 4) if wide else (_LENGTH16, 2)

    def fixed(data: bytes, at: int) -> tuple[int, int]:
        return unpack(data, at)[0], at + size

    return fixed


def _sized(length: Reader, nullable: bool, *, is_text: bool) -> Reader:
    def read(data: bytes, at: int) -> tuple[str | bytes | None, int]:
        size, at = length(data, at)
        if size < 0:
            _check_null(size, nullable)
            return None, at
        end = at + size
        _check_within(data, end)
        return (data[at:end].decode() if is_text else data[at:end]), end

    return read


def _array(element: Reader, length: Reader, nullable: bool) -> Reader:
    def read(data: bytes, at: int) -> tuple[list[Any] | None, int]:
        count, at = length(data, at)
        if count < 0:
            _check_null(count, nullable)
            return None, at
        _check_within(data, at + count)  # an element has a byte at least
        values = []
        for _ in range(count):
            value, at = element(data, at)
            values.append(value)
        return values, at

    return read


def _perhaps(read: Reader) -> Reader:
    """A structure behind a byte that is negative for null."""

    def perhaps(data: bytes, at: int) -> tuple[Any, int]:
        return read(data, at + 1) if data[at] < 0x80 else (None, at + 1)

    return perhaps


def _check_null(length: int, nullable: bool) -> None:
    if not nullable or length < -1:
        raise MalformedError("null, or a negative length, where a value must be")


def _check_within(data: bytes, end: int) -> None:
    if end > len(data):
        raise MalformedError(f"a length reaches {end - len(data)} bytes beyond the end")
