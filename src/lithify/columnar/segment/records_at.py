"""Reads records at given positions of a segment, without those between them, by the pages that they are in.

    positions ─► row groups ─► pages of each column, by the file's list of them ─► read, decoded by Arrow ─► rows

Of columns that have no list of pages, and of headers, whose records take several values each, the row group is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from lithify.columnar.files.ranges import Ranges
from lithify.columnar.parquet.footer import Chunk
from lithify.columnar.parquet.picked_pages import Pages, read_pages, small_file
from lithify.columnar.segment.checked_file import CheckedFile, damage_named
from lithify.columnar.segment.dead_records import Integers

MOST_ROWS = 128 * 1024
MOST_BYTES = 64 * 2**20
"""Of pages that are decoded together, as many as of a row group at most, unless one has more (C38)."""


@dataclass(slots=True)
class _Picked:
    """Pages of one column that are decoded together: all have one dictionary, or none."""

    name: str
    chunk: Chunk
    dictionary: bytes
    pages: list[memoryview] = field(default_factory=list)
    rows: int = 0
    expanded_bytes: int = 0
    wanted: list[Integers] = field(default_factory=list)

    def takes(self, rows: int, chunk: Chunk, dictionary: bytes) -> bool:
        """Whether pages of a chunk with this number of rows can be added."""
        small = self.rows + rows <= MOST_ROWS and self.expanded_bytes + chunk.expanded_bytes <= MOST_BYTES
        return small and not dictionary

    def content(self) -> bytes:
        """As a small file."""
        chunk = replace(self.chunk, expanded_bytes=self.expanded_bytes)
        return small_file(self.dictionary, b"".join(self.pages), chunk, self.rows, self.name)


class RecordsAt:
    """The records at ascending `positions` of an open file. Raises `DamagedError`."""

    def __init__(self, file: CheckedFile, path: str, positions: Integers) -> None:
        self._file = file
        self._path = path
        self._ranges = Ranges(file)
        self._whole_bytes = 0
        counts = [file.footer.metadata.row_group(group).num_rows for group in range(file.row_groups)]
        starts = np.cumsum([0, *counts])
        cuts = np.searchsorted(positions, starts)
        self._groups = {
            int(group): positions[cuts[group] : cuts[group + 1]] - starts[group]
            for group in np.flatnonzero(np.diff(cuts))
        }

    @property
    def bytes_read(self) -> int:
        """All that was read so far, compressed."""
        return self._ranges.bytes_read + self._whole_bytes

    def read(self, columns: Sequence[str]) -> pa.Table:
        """These columns of the records, in order of their positions."""
        if not self._groups:
            return self._file.schema.empty_table().select(list(columns))
        return pa.table({name: self._column(name) for name in columns})

    def _column(self, name: str) -> pa.ChunkedArray:
        chunks = {group: list(self._file.footer.of_columns(group, [name]).values()) for group in self._groups}
        by_page = all(len(some) == 1 and not some[0].repeated and some[0].offset_index for some in chunks.values())
        parts = self._picked(name, {group: some[0] for group, some in chunks.items()}) if by_page else self._whole(name)
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], self._file.schema.field(name).type)

    def _whole(self, name: str) -> Iterator[pa.ChunkedArray]:
        for group, rows in self._groups.items():
            self._whole_bytes += sum(chunk.size_bytes for chunk in self._file.footer.of_columns(group, [name]).values())
            yield self._file.read(group, [name]).column(0).take(pa.array(rows))

    def _picked(self, name: str, chunks: dict[int, Chunk]) -> Iterator[pa.ChunkedArray]:
        picked: _Picked | None = None
        for (group, chunk), pages in zip(chunks.items(), self._pages(chunks), strict=True):
            numbers, among = pages.of_rows(self._groups[group])
            starts, rows = pages.starts[numbers], pages.rows_of(numbers)
            dictionary = self._dictionary(chunk)
            if picked is None or not picked.takes(rows, chunk, dictionary):
                if picked is not None:
                    yield self._decoded(picked)
                picked = _Picked(name, chunk, dictionary)
            picked.wanted.append(among + picked.rows)
            picked.pages += self._ranges.read(starts, starts + pages.sizes[numbers])
            picked.rows += rows
            picked.expanded_bytes += chunk.expanded_bytes
        if picked is not None:
            yield self._decoded(picked)

    def _decoded(self, picked: _Picked) -> pa.ChunkedArray:
        small = CheckedFile.in_memory(self._path, picked.content())
        return small.read(0, [picked.name]).column(0).take(pa.array(np.concatenate(picked.wanted)))

    def _pages(self, chunks: dict[int, Chunk]) -> Iterator[Pages]:
        """The pages of each chunk, by the lists of them, which lie together in the file."""
        places = np.array([chunk.offset_index for chunk in chunks.values()], np.int64)
        with damage_named(self._path):
            for chunk, group, raw in zip(
                chunks.values(), chunks, self._ranges.read(places[:, 0], places.sum(axis=1)), strict=True
            ):
                yield read_pages(bytes(raw), chunk, self._file.footer.metadata.row_group(group).num_rows)

    def _dictionary(self, chunk: Chunk) -> bytes:
        if chunk.start == chunk.first_data_page:
            return b""
        ends = np.array([chunk.start, chunk.first_data_page])
        return b"".join(self._ranges.read(ends[:1], ends[1:]))
