"""Checks the pages of a Parquet file against their checksums while its bytes pass, in one pass and without decoding.

    piece ─► ... | header | page | header | page | ...
                     │        └─ CRC-32: as the header says?
                     └─ its sizes, values and encodings, summed up by chunk: as the footer says?

No checksum covers the headers, so what Arrow decodes by is compared with the footer, which repeats it. A change of a
single byte that decoding would find is found here too, for files as `columnar.segment.writer` writes them.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator

from lithify.columnar.parquet.footer import Chunk, Footer, UnsoundFileError
from lithify.columnar.parquet.pages import DICTIONARY, MOST_HEADER_BYTES, PageHeader, page_header
from lithify.columnar.parquet.thrift import BINARY, BOOL, I32, I64, Kinds, ThriftError, write_struct

_STATISTICS: Kinds = {1: BINARY, 2: BINARY, 3: I64, 4: I64, 5: BINARY, 6: BINARY, 7: BOOL, 8: BOOL}
_HEADER: Kinds = {
    **dict.fromkeys((1, 2, 3, 4), I32),
    5: {1: I32, 2: I32, 3: I32, 4: I32, 5: _STATISTICS},
    7: {1: I32, 2: I32, 3: BOOL},
}
"""What headers of segments have: data pages of version 1, and dictionaries."""
_RLE = 3
"""The encoding of levels, before the values of a page, that Arrow writes."""
_FIXED_BYTES = {1: 4, 2: 8}
"""Of a value, by the physical types that have dictionaries in segments."""
_READ_AHEAD_BYTES = 256
"""Bytes that are added at a time until a header is whole: most have some 50, bounds of keys may add."""


class PageSums:
    """Given the bytes of a file in order, once its footer was read. Raises `UnsoundFileError` if one is wrong."""

    def __init__(self, footer: Footer) -> None:
        _check_as_arrow_reads(footer)
        in_order = sorted((c for group in footer.chunks for c in group.values()), key=lambda chunk: chunk.start)
        _check_same_codec(in_order)
        self._columns = map(_Column, in_order)
        self._column = next(self._columns, None)
        self._at = 0
        self._header = bytearray()
        self._page: PageHeader | None = None
        self._page_bytes = self._sum = 0

    def pass_on(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The same pieces, each checked as far as it can be; the last one is followed by the check of the whole."""
        for piece in pieces:
            self._take(memoryview(piece))
            yield piece
        if self._column is not None:
            raise UnsoundFileError(f"it ends at byte {self._at}, within a column")

    def _take(self, bytes_left: memoryview) -> None:
        while bytes_left and self._column is not None:
            chunk = self._column.chunk
            if self._at < chunk.start:
                taken = min(chunk.start - self._at, len(bytes_left))
            elif self._page is None:
                taken = self._take_header(bytes_left, self._column)
            else:
                taken = self._take_page(bytes_left, self._page)
            self._at += taken
            bytes_left = bytes_left[taken:]
            if self._page is None and not self._header and self._at == chunk.end:
                self._column.check()
                self._column = next(self._columns, None)

    def _take_header(self, bytes_left: memoryview, column: _Column) -> int:
        held, end = len(self._header), column.chunk.end
        begun = self._at - held
        self._header += bytes_left[: min(_READ_AHEAD_BYTES, end - self._at)]
        try:
            page, length = page_header(bytes(self._header), begun, end)
            as_written = write_struct(page.fields, _HEADER)
        except ThriftError as error:
            if len(self._header) >= MOST_HEADER_BYTES or begun + len(self._header) >= end:
                raise UnsoundFileError(f"there is no page at byte {begun}: {error}") from None
            return len(self._header) - held
        if as_written != self._header[:length] or not column.fits(page, begun):
            raise UnsoundFileError(f"the page at byte {begun} has a header that is not as it was written")
        column.add(page, length)
        self._header.clear()
        self._page, self._page_bytes, self._sum = page, page.stored_bytes, 0
        self._end_page(page, begun)
        return length - held

    def _take_page(self, bytes_left: memoryview, page: PageHeader) -> int:
        taken = bytes_left[: self._page_bytes]
        self._sum = zlib.crc32(taken, self._sum)
        self._page_bytes -= len(taken)
        self._end_page(page, self._at)
        return len(taken)

    def _end_page(self, page: PageHeader, at: int) -> None:
        if self._page_bytes:
            return
        if page.fields.get(4) != _signed(self._sum):
            raise UnsoundFileError(f"the page around byte {at} is not what was written: its checksum differs")
        self._page = None


class _Column:
    """The pages of a column chunk, as far as they have passed."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self._values = self._expanded_bytes = 0
        self._pages: Counter[tuple[int, int]] = Counter()

    def fits(self, page: PageHeader, at: int) -> bool:
        """Whether the next page is where the footer says, and is as segments have it where the footer says nothing."""
        if page.kind == DICTIONARY:
            fixed = page.values * _FIXED_BYTES.get(self.chunk.kind, 0) == page.size_bytes
            return fixed and at < self.chunk.first_data_page
        data = page.fields.get(5, {})
        return bool(data.get(3) == data.get(4) == _RLE) and (self._values > 0 or at == self.chunk.first_data_page)

    def add(self, page: PageHeader, header_bytes: int) -> None:
        """Counts a page."""
        self._values += page.counted_values
        self._expanded_bytes += header_bytes + page.size_bytes
        self._pages[page.kind, page.encoding] += 1

    def check(self) -> None:
        """Raises `UnsoundFileError` if the pages are others than the footer says."""
        actual = (self._values, self._expanded_bytes, self._pages)
        if actual != (self.chunk.values, self.chunk.expanded_bytes, self.chunk.page_counts):
            raise UnsoundFileError(f"the pages from byte {self.chunk.start} on do not match its footer")


def _check_as_arrow_reads(footer: Footer) -> None:
    """Arrow skips a number of the footer that has another width than it expects; the place of a dictionary may be."""
    for number, group in enumerate(footer.chunks):
        row_group = footer.metadata.row_group(number)
        for column, (path, chunk) in enumerate(group.items()):
            read = row_group.column(column)
            dictionary = chunk.start if chunk.start < chunk.first_data_page else None
            if (read.dictionary_page_offset, read.data_page_offset) != (dictionary, chunk.first_data_page):
                raise UnsoundFileError(f"row group {number} has {path} at a place that readers do not use")


def _check_same_codec(chunks: Iterable[Chunk]) -> None:
    """A segment has one codec, so that one whose footer names another in a place was changed there."""
    if len({chunk.codec for chunk in chunks}) > 1:
        raise UnsoundFileError("its columns have several codecs, but a segment has one")


def _signed(checksum: int) -> int:
    """As a header has it, in 32 bits with a sign."""
    return checksum - (checksum >> 31 << 32)
