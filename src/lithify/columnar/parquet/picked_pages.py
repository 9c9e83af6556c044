"""Picks pages of a column chunk by the rows in them, as a small Parquet file that Arrow decodes with all its checks.

    chunk     [ dictionary ][ page 0: rows 0 .. ][ page 1: rows 4096 .. ][ page 2 ] ..
    file      PAR1 [ dictionary ][ page 1 ][ page 7 ] footer PAR1          one column, one row group

Where pages begin, and with which rows, is in the file's own list of them (Parquet: offset index). It has no checksum:
its pages have to lie one behind the other and fill the chunk, and who picks rows has to know what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lithify.columnar.parquet.footer import Chunk, UnsoundFileError
from lithify.columnar.parquet.thrift import BINARY, I32, I64, Kinds, write_struct

Integers = npt.NDArray[np.int64]

_LIST_OF_STRUCTS = 0x19, 0x0C
"""The first byte of the list: field 1; of its head, in the lower bits: of structs."""
_PLACE = (0x16, 0x15, 0x16, 0x00)
"""How a place is written: an offset of 64 bits, a size of 32, a row of 64, the end; each number behind its field."""
_VALUE_BITS = 7

_OPTIONAL, _PLAIN, _RLE = 1, 0, 3
_COLUMN: Kinds = {1: I32, 2: (I32,), 3: (BINARY,), 4: I32, 5: I64, 6: I64, 7: I64, 9: I64, 11: I64}
_FOOTER: Kinds = {
    1: I32,
    2: ({1: I32, 3: I32, 4: BINARY, 5: I32},),
    3: I64,
    4: ({1: ({2: I64, 3: _COLUMN},), 2: I64, 3: I64},),
}
_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True)
class Pages:
    """The data pages of a chunk: where they start in the file, their sizes with headers, and the numbers of their first
    rows in the row group, then of its end. int64 all.
    """

    starts: Integers
    sizes: Integers
    first_rows: Integers

    def of_rows(self, rows: Integers) -> tuple[Integers, Integers]:
        """The numbers of the pages with these rows, which ascend, and for each row where it is among theirs."""
        pages = np.searchsorted(self.first_rows, rows, side="right") - 1
        numbers, of_row = np.unique(pages, return_inverse=True)
        counts = self.first_rows[numbers + 1] - self.first_rows[numbers]
        before = np.concatenate([[0], np.cumsum(counts)[:-1]])
        return numbers, rows - self.first_rows[pages] + before[of_row]

    def rows_of(self, numbers: Integers) -> int:
        """How many rows these pages have."""
        return int((self.first_rows[numbers + 1] - self.first_rows[numbers]).sum())


def read_pages(raw: bytes, chunk: Chunk, rows: int) -> Pages:
    """The pages of a chunk with that number of rows, by its list of them. Raises `UnsoundFileError`."""
    starts, sizes, first_rows = _places(raw)
    ends = starts + sizes
    whole = len(starts) > 0 and starts[0] == chunk.first_data_page and ends[-1] == chunk.end and first_rows[0] == 0
    if not whole or (ends[:-1] != starts[1:]).any() or (sizes <= 0).any() or (np.diff(first_rows) <= 0).any():
        raise UnsoundFileError(f"its list of the pages from byte {chunk.first_data_page} on is wrong")
    if first_rows[-1] >= rows:
        raise UnsoundFileError(f"its list of the pages from byte {chunk.first_data_page} on has rows that do not exist")
    return Pages(starts, sizes, np.append(first_rows, rows))


def _places(raw: bytes) -> tuple[Integers, Integers, Integers]:
    """The three numbers of each place, from the bytes of Thrift, all at once: a file has thousands."""
    head = 2
    if len(raw) < head or raw[0] != _LIST_OF_STRUCTS[0] or raw[1] & 0x0F != _LIST_OF_STRUCTS[1]:
        raise UnsoundFileError("a list of its pages is malformed")
    count = raw[1] >> 4
    if count == 0x0F:
        count = shift = 0
        while head < len(raw) and shift <= 4 * _VALUE_BITS:
            count |= (raw[head] & 0x7F) << shift
            head, shift = head + 1, shift + _VALUE_BITS
            if raw[head - 1] < 0x80:
                break
    content = np.frombuffer(raw, np.uint8, offset=head)
    last = np.flatnonzero(content < 0x80)[: 7 * count]  # every number, field and end has one last byte
    if len(last) != 7 * count or not count:
        raise UnsoundFileError("a list of its pages ends before they do")
    first = np.append(0, last[:-1] + 1).reshape(count, 7)
    last = last.reshape(count, 7)
    fixed = [0, 2, 4, 6]
    if (first[:, fixed] != last[:, fixed]).any() or (content[first[:, fixed]] != _PLACE).any():
        raise UnsoundFileError("a list of its pages is not valid Thrift")
    numbers = [_zigzag(content, first[:, field], last[:, field]) for field in (1, 3, 5)]
    return numbers[0], numbers[1], numbers[2]


def _zigzag(content: npt.NDArray[np.uint8], first: Integers, last: Integers) -> Integers:
    """The numbers of which each takes the bytes from `first` to `last`."""
    if (last - first).max() >= 9:  # 63 bits
        raise UnsoundFileError("a list of its pages has a number that is too large")
    numbers = np.zeros(len(first), np.int64)
    for place in range(int((last - first).max()) + 1):
        there = first + place <= last
        numbers[there] |= (content[first[there] + place].astype(np.int64) & 0x7F) << (_VALUE_BITS * place)
    return numbers >> 1 ^ -(numbers & 1)


def small_file(dictionary: bytes, pages: bytes, chunk: Chunk, rows: int, name: str) -> bytes:
    """A Parquet file of the column `name` with these pages of a chunk, which have so many rows."""
    at = len(_MAGIC)
    facts = {
        1: chunk.kind,
        2: [_PLAIN, _RLE],
        3: [name.encode()],
        4: chunk.codec,
        5: rows,
        6: chunk.expanded_bytes,  # at most: readers only bound what they allocate by it
        7: len(dictionary) + len(pages),
        9: at + len(dictionary),
    }
    if dictionary:
        facts[11] = at
    leaf = {1: chunk.kind, 3: _OPTIONAL if chunk.optional else 0, 4: name.encode()}
    column = {2: 0, 3: facts}
    footer = write_struct(
        {1: 1, 2: [{4: b"schema", 5: 1}, leaf], 3: rows, 4: [{1: [column], 2: len(pages), 3: rows}]}, _FOOTER
    )
    return b"".join([_MAGIC, dictionary, pages, footer, len(footer).to_bytes(4, "little"), _MAGIC])
