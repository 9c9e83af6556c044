"""What a column chunk of a Parquet file can expand to, from the headers of its pages (C51).

    chunk   [ header | dictionary page ][ header | page ][ header | page ] ...
               └─ bytes when decompressed, values, encoding: what Arrow allocates by

A few kilobytes can expand to hundreds of gigabytes, by compression, by a dictionary with one large value
that every row names, or by prefixes shared between values. The footer's own sums do not tell, and
need not be true; the headers of pages are what Arrow goes by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from lithify.columnar.parquet.footer import Chunk, UnsoundFileError
from lithify.columnar.parquet.thrift import Struct, ThriftError, read_struct

ReadAt: TypeAlias = Callable[[int, int], bytes]
"""Called with a number of bytes and a place in the file."""

_HEADER_BYTES = (256, 64 * 2**10)
"""Read for the header of a page: it has some 50, and may have the bounds of long keys in it."""

_DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(4)
_VALUES_OF = {_DATA: (5, 1, 2), _DICTIONARY: (7, 1, 2), _DATA_V2: (8, 1, 4)}
"""By the kind of a page: the field of its own header, and in it those of values and encoding."""

_OF_DICTIONARY = (2, 8)
_SHARED_PREFIXES = 7
FIXED_BYTES = 16
"""More than any value of a fixed size takes, with the levels of a nested one."""


@dataclass(frozen=True, slots=True)
class Weight:
    """How much memory a chunk can take, decoded: what its pages hold, and besides so much for each value."""

    page_bytes: int
    all_pages_bytes: int
    value_bytes: int

    def most(self, values: int) -> int:
        """Bytes that so many of its values can take."""
        return self.all_pages_bytes + values * (self.value_bytes + FIXED_BYTES)


def weigh(read_at: ReadAt, chunk: Chunk) -> Weight:
    """Reads nothing but headers. Raises `UnsoundFileError`."""
    largest = total = dictionary = shared = 0
    for page in _pages(read_at, chunk):
        largest = max(largest, page.size_bytes)
        total += page.size_bytes
        if page.kind == _DICTIONARY:
            dictionary = page.size_bytes
        elif chunk.of_bytes and page.encoding in _OF_DICTIONARY:
            shared = max(shared, dictionary)
        elif chunk.of_bytes and page.encoding == _SHARED_PREFIXES:
            shared = max(shared, page.size_bytes)
    return Weight(largest, total, shared)


@dataclass(frozen=True, slots=True)
class _Page:
    kind: int
    size_bytes: int
    values: int
    encoding: int


def _pages(read_at: ReadAt, chunk: Chunk) -> Iterator[_Page]:
    """As far as Arrow goes: until all values of the chunk were there."""
    at, left = chunk.start, chunk.values
    while left > 0:
        header, data_at = _header(read_at, at, chunk.end)
        kind, size, stored = (header.get(field) for field in (1, 2, 3))
        if type(size) is not int or type(stored) is not int or not 0 <= stored <= chunk.end - data_at or size < 0:
            raise UnsoundFileError(f"the page at byte {at} has a size that cannot be")
        if kind in _VALUES_OF:
            page = _page(header, kind, size, at)
            left -= page.values if kind != _DICTIONARY else 0
            yield page
        at = data_at + stored
    if left < 0:
        raise UnsoundFileError(f"the pages from byte {chunk.start} on have more values than the footer says")


def _page(header: Struct, kind: int, size: int, at: int) -> _Page:
    own, values_field, encoding_field = _VALUES_OF[kind]
    facts = header.get(own)
    values, encoding = (facts.get(values_field), facts.get(encoding_field)) if isinstance(facts, dict) else (None, None)
    if type(values) is not int or type(encoding) is not int or values < 0:
        raise UnsoundFileError(f"the page at byte {at} does not say what is in it")
    return _Page(kind, size, values, encoding)


def _header(read_at: ReadAt, at: int, end: int) -> tuple[Struct, int]:
    for size in _HEADER_BYTES:
        here = read_at(min(size, end - at), at)
        try:
            header, length = read_struct(here)
        except ThriftError as error:
            reason = error
            if size >= end - at:
                break
        else:
            return header, at + length
    raise UnsoundFileError(f"there is no page at byte {at}: {reason}")
