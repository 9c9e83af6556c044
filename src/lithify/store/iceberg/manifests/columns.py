"""Manifests and manifest lists as columns: NumPy decodes all blocks of all files at once, field by field (C48).

    lane 0   [entry][entry] ... [entry]    a block of file 1
    lane 1   [entry][entry] ... [entry]    a block of file 1
    lane 2   [entry]                       a block of file 2
             one step decodes one field of one entry of each lane

An object per entry, as PyIceberg's reader makes, takes five times as long, and importing it takes longer than reading
a thousand segments. Only for bytes whose checksum is known: a length that is wrong ends in an exception.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lithify.store.iceberg.manifests.avro_blocks import AvroFile

Ints = npt.NDArray[np.int64]
Name = tuple[int, ...]
"""A value of an entry by the ids of the fields around it and its own. In a map its key is the last of them, in another
array the index of an item is one of them. (125, 2) is the lower bound of column 2, (507, 0, 510) the lower bound of the
first partition field."""

MISSING = -(2**63)
"""In a column of numbers, where an entry does not have it. No count and no size is that small."""

_NUMBER_BITS = 64


@dataclass(frozen=True, slots=True)
class Spans:
    """Where the bytes of a value are in `Columns.data`; a start of -1 where an entry has none."""

    start: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class Columns:
    """What entries of files say, in their order."""

    data: bytes
    rows: int
    numbers: Mapping[Name, Ints]
    spans: Mapping[Name, Spans]

    def number(self, name: Name) -> Ints:
        """A column of numbers."""
        numbers = self.numbers.get(name)
        return np.full(self.rows, MISSING, np.int64) if numbers is None else numbers

    def there(self, name: Name) -> Ints:
        """The same of a column that every entry has. Raises `ValueError`."""
        numbers = self.number(name)
        if (numbers == MISSING).any():
            raise ValueError(f"an entry has no {name}")
        return numbers

    def bound(self, name: Name, size: int) -> Ints:
        """A column of numbers of `size` bytes as Iceberg writes bounds; `MISSING` where there is none.

        Raises `ValueError` for one of another size.
        """
        spans = self._spans(name)
        there = spans.start >= 0
        if not (spans.end - spans.start == size)[there].all():
            raise ValueError(f"a bound {name} does not have {size} bytes")
        numbers = np.full(self.rows, MISSING, np.int64)
        at = spans.start[there][:, np.newaxis] + np.arange(size)
        numbers[there] = np.frombuffer(self.data, np.uint8)[at].view(f"<i{size}").reshape(-1)
        return numbers

    def bound_there(self, name: Name, size: int) -> Ints:
        """The same of a bound that every entry has."""
        if name not in self.spans or (self.spans[name].start < 0).any():
            raise ValueError(f"an entry has no {name}")
        return self.bound(name, size)

    def bytes_of(self, name: Name) -> list[bytes | None]:
        """A column of bytes."""
        spans = self._spans(name)
        ranges = zip(spans.start.tolist(), spans.end.tolist(), strict=True)
        return [None if start < 0 else self.data[start:end] for start, end in ranges]

    def texts(self, name: Name) -> list[str]:
        """A column of texts that every entry has. Raises `ValueError`."""
        there = [text.decode() for text in self.bytes_of(name) if text is not None]
        if len(there) < self.rows:
            raise ValueError(f"an entry has no {name}")
        return there

    def _spans(self, name: Name) -> Spans:
        nowhere = np.full(0 if name in self.spans else self.rows, -1, np.int64)
        return self.spans.get(name, Spans(nowhere, nowhere))


def columns_of(files: Sequence[AvroFile], wanted: frozenset[Name]) -> Columns:
    """The `wanted` values of all entries of files with one schema. Raises any exception for other bytes."""
    blocks = [block for file in files for block in file.blocks]
    (schema,) = {file.header["avro.schema"] for file in files}
    data = b"".join(data for _, data in blocks)
    rows = np.array([rows for rows, _ in blocks], np.int64)
    sizes = np.array([len(data) for _, data in blocks], np.int64)
    ends, first = np.cumsum(sizes), np.cumsum(rows) - rows
    lanes = _Lanes(np.frombuffer(data, np.uint8), ends - sizes, int(rows.sum()))
    read = _reader(schema, wanted)
    for step in range(int(rows.max(initial=0))):
        which = np.flatnonzero(rows > step)
        read(lanes, which, first[which] + step)
    if not (lanes.at == ends).all():
        raise ValueError("a block has more or less than its entries")
    return Columns(data, lanes.rows, lanes.numbers, lanes.spans)


@dataclass(slots=True)
class _Lanes:
    """Where each lane is, and the columns that have been read."""

    data: npt.NDArray[np.uint8]
    at: Ints
    rows: int
    numbers: dict[Name, Ints] = field(default_factory=dict)
    spans: dict[Name, Spans] = field(default_factory=dict)

    def longs(self, which: Ints) -> Ints:
        """The next number of these lanes."""
        at = self.at[which]
        byte = self.data[at]
        value = (byte & 0x7F).astype(np.uint64)
        at += 1
        more, shift = np.flatnonzero(byte >= 0x80), 7
        while more.size:
            if shift >= _NUMBER_BITS:
                raise ValueError("a number does not end")
            byte = self.data[at[more]]
            at[more] += 1
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            more, shift = more[byte >= 0x80], shift + 7
        self.at[which] = at
        return (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)

    def ranges(self, which: Ints) -> tuple[Ints, Ints]:
        """Where the next bytes of these lanes are."""
        sizes = self.longs(which)
        start = self.at[which]
        end = start + sizes
        if (sizes < 0).any() or (end > len(self.data)).any():
            raise ValueError("bytes do not end")
        self.at[which] = end
        return start, end

    def put_numbers(self, name: Name, rows: Ints, values: Ints) -> None:
        if name not in self.numbers:
            self.numbers[name] = np.full(self.rows, MISSING, np.int64)
        self.numbers[name][rows] = values

    def put_spans(self, name: Name, rows: Ints, start: Ints, end: Ints) -> None:
        if name not in self.spans:
            self.spans[name] = Spans(np.full(self.rows, -1, np.int64), np.full(self.rows, -1, np.int64))
        self.spans[name].start[rows] = start
        self.spans[name].end[rows] = end


_Read = Callable[[_Lanes, Ints, Ints], None]
"""Reads the next value of these lanes into these rows."""


@lru_cache(maxsize=64)
def _reader(schema: str, wanted: frozenset[Name]) -> _Read:
    return _read_of(json.loads(schema), (), (), wanted)


def _read_of(of: Any, name: Name, around: Name, wanted: Collection[Name]) -> _Read:
    """What reads values of an Avro type, which has this name; names of its fields begin with `around`."""
    kind = of["type"] if isinstance(of, dict) else of
    match kind:
        case dict():
            return _read_of(kind, name, around, wanted)
        case list():
            return _optional(kind, name, around, wanted)
        case "record":
            return _record([_read_of(f, (*around, f["field-id"]), around, wanted) for f in of["fields"]])
        case "array" if of.get("logicalType") == "map":
            (_, value) = of["items"]["fields"]
            return _array(lambda _: _pair(value["type"], name, wanted))
        case "array":
            return _array(lambda index: _read_of(of["items"], (*name, index), (*name, index), wanted))
        case "boolean":
            return _skip_byte
        case "int" | "long":
            return _number(name, wanted)
        case "bytes" | "string":
            return _bytes(name, wanted)
    raise ValueError(f"it has values of type {kind}")


def _record(fields: Sequence[_Read]) -> _Read:
    def read(lanes: _Lanes, which: Ints, rows: Ints) -> None:
        for one in fields:
            one(lanes, which, rows)

    return read


def _optional(kinds: Sequence[Any], name: Name, around: Name, wanted: Collection[Name]) -> _Read:
    nothing, kind = kinds
    if nothing != "null":
        raise ValueError(f"it has values of type {kinds}")
    value = _read_of(kind, name, around, wanted)

    def read(lanes: _Lanes, which: Ints, rows: Ints) -> None:
        there = lanes.longs(which) == 1
        value(lanes, which[there], rows[there])

    return read


def _array(item: Callable[[int], _Read]) -> _Read:
    """What reads arrays; `item` is given the index of an item, and reads it."""
    item = lru_cache(item)

    def read(lanes: _Lanes, which: Ints, rows: Ints) -> None:
        index = 0
        while which.size:
            counts = lanes.longs(which)
            if (counts < 0).any():
                raise ValueError("an array has the sizes of its parts")
            for before in range(int(counts.max())):
                more = counts > before
                item(index)(lanes, which[more], rows[more])
                index += 1
            which, rows = which[counts > 0], rows[counts > 0]

    return read


def _pair(kind: Any, name: Name, wanted: Collection[Name]) -> _Read:
    """What reads a key of a map and its value: a number or bytes."""
    keys = [named[-1] for named in wanted if named[:-1] == name]

    def read(lanes: _Lanes, which: Ints, rows: Ints) -> None:
        there = lanes.longs(which)
        if kind in ("int", "long"):
            values = lanes.longs(which)
            for key in keys:
                chosen = there == key
                lanes.put_numbers((*name, key), rows[chosen], values[chosen])
        else:
            start, end = lanes.ranges(which)
            for key in keys:
                chosen = there == key
                lanes.put_spans((*name, key), rows[chosen], start[chosen], end[chosen])

    return read


def _number(name: Name, wanted: Collection[Name]) -> _Read:
    def read(lanes: _Lanes, which: Ints, rows: Ints) -> None:
        values = lanes.longs(which)
        if name in wanted:
            lanes.put_numbers(name, rows, values)

    return read


def _bytes(name: Name, wanted: Collection[Name]) -> _Read:
    def read(lanes: _Lanes, which: Ints, rows: Ints) -> None:
        start, end = lanes.ranges(which)
        if name in wanted:
            lanes.put_spans(name, rows, start, end)

    return read


def _skip_byte(lanes: _Lanes, which: Ints, rows: Ints) -> None:
    lanes.at[which] += 1
