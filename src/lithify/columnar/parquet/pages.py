"""Bounds the decoded size of a column chunk of a Parquet file by its page headers (C51).

    chunk   [ header | dictionary page ][ header | page ][ header | page ] ...
               └─ uncompressed bytes, values, encoding: Arrow allocates by these

A few kilobytes can expand to hundreds of gigabytes, by compression, by a dictionary with one large value
that every row refers to, or by prefixes shared between values (DELTA_BYTE_ARRAY). The sums in the footer do
not show this and may be wrong; Arrow uses the page headers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from lithify.columnar.parquet.footer import Chunk, UnsoundFileError
from lithify.columnar.parquet.thrift import Struct, ThriftError, read_struct

ReadAt: TypeAlias = Callable[[int, int], bytes]
"""Called with (number of bytes, position in the file)."""

MOST_HEADER_BYTES = 64 * 2**10
_HEADER_BYTES = (256, MOST_HEADER_BYTES)
"""Bytes read for a page header, at first and if that is too short: most have some 50, bounds of keys may add."""

_DATA, _INDEX, DICTIONARY, _DATA_V2 = range(4)
_VALUES_OF = {_DATA: (5, 1, 2), DICTIONARY: (7, 1, 2), _DATA_V2: (8, 1, 4)}
"""By page type: the field id of its specific header, and in it the field ids of number of values and encoding."""

_OF_DICTIONARY = (2, 8)
_SHARED_PREFIXES = 7
FIXED_BYTES = 16
"""Upper bound for a value of fixed size, with the levels of a nested one."""


@dataclass(frozen=True, slots=True)
class Weight:
    """Decoded size of a chunk: its largest page, all its pages, and the most bytes that each value may add."""

    page_bytes: int
    all_pages_bytes: int
    value_bytes: int

    def most(self, values: int) -> int:
        """Most bytes that `values` of its values can take."""
        return self.all_pages_bytes + values * (self.value_bytes + FIXED_BYTES)


def weigh(read_at: ReadAt, chunk: Chunk) -> Weight:
    """Reads the page headers of a chunk. Raises `UnsoundFileError`."""
    largest = total = dictionary = shared = 0
    for page in _pages(read_at, chunk):
        largest = max(largest, page.size_bytes)
        total += page.size_bytes
        if page.kind == DICTIONARY:
            dictionary = page.size_bytes
        elif chunk.of_bytes and page.encoding in _OF_DICTIONARY:
            shared = max(shared, dictionary)
        elif chunk.of_bytes and page.encoding == _SHARED_PREFIXES:
            shared = max(shared, page.size_bytes)
    return Weight(largest, total, shared)


@dataclass(frozen=True, slots=True)
class PageHeader:
    """What a header says of its page, which follows it in `stored_bytes`; `fields` is all of it."""

    kind: int
    size_bytes: int
    stored_bytes: int
    values: int
    encoding: int
    fields: Struct

    @property
    def counted_values(self) -> int:
        """Values that count for the chunk: a dictionary's do not."""
        return 0 if self.kind == DICTIONARY else self.values


def page_header(raw: bytes, at: int, end: int) -> tuple[PageHeader, int]:
    """The header at the start of `raw`, and its length; it is at byte `at` of a chunk that ends at `end`.

    Raises `ThriftError` if none is there, or not all of it, and `UnsoundFileError` if no page can have it.
    """
    header, length = read_struct(raw)
    kind, size, stored = header.get(1), header.get(2), header.get(3)
    if type(size) is not int or type(stored) is not int or not 0 <= stored <= end - at - length or size < 0:
        raise UnsoundFileError(f"the page at byte {at} has an impossible size")
    if type(kind) is not int or kind not in _VALUES_OF:
        return PageHeader(-1, size, stored, 0, -1, header), length  # readers skip it
    values, encoding = _content(header, kind, at)
    return PageHeader(kind, size, stored, values, encoding, header), length


def _pages(read_at: ReadAt, chunk: Chunk) -> Iterator[PageHeader]:
    """The pages of a chunk, as far as Arrow reads: until all its values were read."""
    at, left = chunk.start, chunk.values
    while left > 0:
        page, data_at = _header(read_at, at, chunk.end)
        left -= page.counted_values
        if page.kind in _VALUES_OF:
            yield page
        at = data_at + page.stored_bytes
    if left < 0:
        raise UnsoundFileError(f"the pages from byte {chunk.start} on have more values than its footer states")


def _content(header: Struct, kind: Any, at: int) -> tuple[int, int]:
    own, values_field, encoding_field = _VALUES_OF[kind]
    facts = header.get(own)
    values, encoding = (facts.get(values_field), facts.get(encoding_field)) if isinstance(facts, dict) else (None, None)
    if type(values) is not int or type(encoding) is not int or values < 0:
        raise UnsoundFileError(f"the header of the page at byte {at} does not describe its content")
    return values, encoding


def _header(read_at: ReadAt, at: int, end: int) -> tuple[PageHeader, int]:
    for size in _HEADER_BYTES:
        try:
            page, length = page_header(read_at(min(size, end - at), at), at, end)
        except ThriftError as error:
            reason = error
            if size >= end - at:
                break
        else:
            return page, at + length
    raise UnsoundFileError(f"there is no page at byte {at}: {reason}")
