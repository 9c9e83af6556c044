"""Functions that write a layout in one version, made once from its fields.

A writer appends buffers to a list. Batches of records are passed on as they are. What a dict does not name has the
default of the specification.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

from lithify.kafka_protocol.reading import FIXED
from lithify.kafka_protocol.table import ARRAY, STRUCT, Field

Pieces = list[Any]
"""Buffers in their order."""
Writer = Callable[[Pieces, Any], None]
_LENGTH16, _LENGTH32 = struct.Struct(">h").pack, struct.Struct(">i").pack
_SHORT: Final = tuple(bytes([number]) for number in range(0x80))
"""Numbers of one byte."""


def struct_writer(fields: Sequence[Field], version: int, *, flexible: bool) -> Writer:
    """A writer of all fields of a dict."""
    present = [field for field in fields if field.is_in(version)]
    plain = [field for field in present if field.tag is None]
    steps: list[Writer] = []
    for is_fixed, found in groupby(plain, lambda field: field.kind in FIXED):
        run = list(found)
        steps += [_fixed(run)] if is_fixed else [_one(field, version, flexible) for field in run]
    if flexible:
        tagged = sorted((field for field in present if field.tag is not None), key=lambda field: field.tag or 0)
        steps.append(_tagged([(field, _value(field, version, True)) for field in tagged]))

    def write(out: Pieces, value: dict[str, Any]) -> None:
        for step in steps:
            step(out, value)

    return write


def unsigned(number: int) -> bytes:
    """A number of seven bits a byte, the lowest first."""
    if number < 0x80:
        return _SHORT[number]
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _fixed(fields: Sequence[Field]) -> Writer:
    known = [(field.name, field.default) for field in fields]
    pack = struct.Struct(">" + "".join(FIXED[field.kind] for field in fields)).pack

    def write(out: Pieces, value: dict[str, Any]) -> None:
        out.append(pack(*[value.get(name, default) for name, default in known]))

    return write


def _one(field: Field, version: int, flexible: bool) -> Writer:
    name, default, write = field.name, field.default, _value(field, version, flexible)

    def one(out: Pieces, value: dict[str, Any]) -> None:
        write(out, value.get(name, default))

    return one


def _tagged(fields: Sequence[tuple[Field, Writer]]) -> Writer:
    def write(out: Pieces, value: dict[str, Any]) -> None:
        told = [(field, one) for field, one in fields if value.get(field.name, field.default) != field.default]
        out.append(unsigned(len(told)))
        for field, one in told:
            pieces: Pieces = []
            one(pieces, value[field.name])
            out += (unsigned(field.tag or 0), unsigned(sum(map(len, pieces))), *pieces)

    return write


def _value(field: Field, version: int, flexible: bool) -> Writer:
    """A writer of one value of that type."""
    if field.kind.startswith(ARRAY):
        return _array(_element(field, version, flexible), _length(flexible, wide=True))
    if field.kind == STRUCT and field.may_be_null(version):
        return _perhaps(_element(field, version, flexible))
    if field.kind == "records":
        return _records(_length(flexible, wide=True))
    if field.kind == "bytes":
        return _sized(_length(flexible, wide=True))
    return _element(field, version, flexible)


def _element(field: Field, version: int, flexible: bool) -> Writer:
    """A writer of an element of an array, or of a value alone."""
    kind = field.kind.removeprefix(ARRAY)
    if kind == STRUCT:
        return struct_writer(field.fields, version, flexible=flexible)
    if kind == "string":
        return _text(_sized(_length(flexible, wide=False)))
    pack = struct.Struct(">" + FIXED[kind]).pack

    def write(out: Pieces, value: Any) -> None:
        out.append(pack(value))

    return write


def _length(flexible: bool, *, wide: bool) -> Callable[[int], bytes]:
    """Writes a length, -1 for null."""
    if flexible:
        return lambda length: unsigned(length + 1)
    return _LENGTH32 if wide else _LENGTH16


def _sized(length: Callable[[int], bytes]) -> Writer:
    def write(out: Pieces, value: bytes | None) -> None:
        out += (length(-1),) if value is None else (length(len(value)), value)

    return write


def _text(write: Writer) -> Writer:
    def text(out: Pieces, value: str | None) -> None:
        write(out, None if value is None else value.encode())

    return text


def _records(length: Callable[[int], bytes]) -> Writer:
    """Of bytes, or of buffers one after the other."""

    def write(out: Pieces, value: Any) -> None:
        if value is None:
            out.append(length(-1))
            return
        buffers = value if isinstance(value, list | tuple) else (value,)
        out.append(length(sum(map(len, buffers))))
        out += buffers

    return write


def _array(element: Writer, length: Callable[[int], bytes]) -> Writer:
    def write(out: Pieces, values: Sequence[Any] | None) -> None:
        if values is None:
            out.append(length(-1))
            return
        out.append(length(len(values)))
        for value in values:
            element(out, value)

    return write


def _perhaps(write: Writer) -> Writer:
    """A structure behind a byte that is negative for null."""

    def perhaps(out: Pieces, value: Any) -> None:
        if value is None:
            out.append(b"\xff")
        else:
            out.append(b"\x01")
            write(out, value)

    return perhaps
