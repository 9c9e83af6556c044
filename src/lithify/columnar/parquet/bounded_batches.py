"""Reads row groups of a Parquet file in pieces of bounded memory, however much they expand (C51).

    row group ──► page headers: most bytes per row ──► rows per batch ──► pieces for one append each

A file that repeats one large value in each row is read a few rows at a time. Pages, and record headers of
a row group, cannot be divided: the file is refused if they are too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lithify.columnar.parquet.footer import Footer, UnsoundFileError, read_footer
from lithify.columnar.parquet.pages import weigh
from lithify.model.settings.units import format_bytes

PIECE_ROWS = 500_000
PIECE_BYTES = 128 * 2**20
PAGES_BYTES = 256 * 2**20
"""Limit for the sum of the largest page of each column, which decoding holds besides the rows."""
LISTS_BYTES = 512 * 2**20
"""Limit for the lists of a row group, since a single row may have all of them."""


@dataclass(frozen=True, slots=True)
class BoundedFile:
    """An open Parquet file with a checked footer."""

    source: Any
    footer: Footer
    file: pq.ParquetFile

    @classmethod
    def of(cls, source: Any) -> BoundedFile:
        """Reads and checks the footer. Raises `UnsoundFileError` or errors of Arrow."""
        footer = read_footer(source)
        return cls(source, footer, pq.ParquetFile(source, metadata=footer.metadata))

    def pieces(self) -> Iterator[pa.Table]:
        """All rows in order. Raises `UnsoundFileError`, which names the row group, or errors of Arrow."""
        for group, chunks in enumerate(self.footer.chunks):
            if chunks:  # else it has no rows
                yield from self._pieces(group)

    def _pieces(self, group: int) -> Iterator[pa.Table]:
        facts = self.footer.metadata.row_group(group)
        pieces = 1 + max(facts.num_rows // PIECE_ROWS, facts.total_byte_size // PIECE_BYTES)
        rows = -(-facts.num_rows // pieces)
        waiting: list[pa.RecordBatch] = []
        size = count = 0
        for batch in self.file.iter_batches(batch_size=min(rows, self._rows_at_once(group)), row_groups=[group]):
            if waiting and (count + batch.num_rows > rows or size + batch.nbytes > PIECE_BYTES):
                yield pa.Table.from_batches(waiting)
                waiting, size, count = [], 0, 0
            waiting.append(batch)
            size, count = size + batch.nbytes, count + batch.num_rows
        if waiting:
            yield pa.Table.from_batches(waiting)

    def _rows_at_once(self, group: int) -> int:
        """Rows per batch, few enough for `PIECE_BYTES` whatever their size. Raises `UnsoundFileError`."""
        chunks = self.footer.chunks[group].values()
        weights = [(chunk, weigh(self.source.read_at, chunk)) for chunk in chunks]
        _check(group, "pages that", sum(weight.page_bytes for _, weight in weights), PAGES_BYTES)
        lists = sum(weight.most(chunk.values) for chunk, weight in weights if chunk.repeated)
        _check(group, "headers that can", lists, LISTS_BYTES)
        of_a_row = sum(weight.value_bytes for chunk, weight in weights if not chunk.repeated)
        return int(max(1, min(PIECE_ROWS, PIECE_BYTES // max(1, of_a_row))))


def _check(group: int, what: str, size_bytes: int, most_bytes: int) -> None:
    if size_bytes > most_bytes:
        raise UnsoundFileError(
            f"row group {group} has {what} expand to {format_bytes(size_bytes)}, but at most"
            f" {format_bytes(most_bytes)} are read: write it with smaller pages and row groups"
        )
