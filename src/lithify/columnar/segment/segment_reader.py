"""Reads the records of a segment one row group at a time, those that are left: masked ones are passed over.

    file      `checked_file`: checked before Arrow decodes it
    schema    that of a segment
    mask      `mask_file`: loaded when the segment is opened, if it has one

A file that is missing, damaged, or not the one the manifest refers to raises a `DamagedError` that names it
(C8). Reading one takes no more memory than a row group of a segment may (C51).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keyindex.key_index import KeyIndex
from lithify.columnar.parquet.end_sum import EndSum
from lithify.columnar.parquet.footer import UnsoundFileError
from lithify.columnar.parquet.page_sums import PageSums
from lithify.columnar.segment.checked_file import RESTORE, CheckedFile, damage_named
from lithify.columnar.segment.dead_records import DeadPositions, Flags, Integers
from lithify.columnar.segment.facts import facts
from lithify.columnar.segment.records_at import RecordsAt
from lithify.columnar.segment.schema import HEADERS, OFFSET, SEGMENT_SCHEMA, VALUE, schema_in
from lithify.columnar.segment.writer import HEADER_KEY_PATH
from lithify.errors import DamagedError
from lithify.model.segment import Segment

VALUES_BYTES = 2**20
"""Of values, decoded at a time where some are masked, so that what is left is copied within the processor's cache."""


class SegmentReader:
    """Reads row groups of one segment. A context manager, which holds the file open. Raises `DamagedError`.

    Row groups are the file's: in a segment with a mask, one may have no records left. Callers that have read the mask
    before give `masked`.
    """

    def __init__(self, access: FileAccess, segment: Segment, masked: BitMap | None = None) -> None:
        self._segment = segment
        self._access = access
        self._masked = masked

    def __enter__(self) -> SegmentReader:
        segment = self._segment
        self._file = CheckedFile(self._access, segment.path, segment.size_bytes)
        try:
            self._file.check(size_bytes=segment.size_bytes, records=segment.records_in_file)
            if not self._file.schema.equals(self.schema):
                raise DamagedError(f"{segment.path}: its columns are not the columns of a segment", hint=RESTORE)
            if segment.mask is not None and self._masked is None:
                from lithify.columnar.segment.mask_file import read_mask  # few segments have one

                self._masked = read_mask(self._access, segment)
        except BaseException:
            self._file.close()
            raise
        in_groups = [self.footer().row_group(group).num_rows for group in range(self.row_groups)]
        self._starts: list[int] = np.cumsum([0, *in_groups]).tolist()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def schema(self) -> pa.Schema:
        """Its columns, by its kind of topic."""
        return schema_in(self._file.schema.names)

    @property
    def row_groups(self) -> int:
        return self._file.row_groups

    def records(self, row_group: int) -> int:
        """How many of a row group are left."""
        start, end = self._starts[row_group : row_group + 2]
        return end - start - (self._masked.range_cardinality(start, end) if self._masked else 0)

    def footer(self) -> pq.FileMetaData:
        """The footer of the file, which does not include masks."""
        return self._file.footer.metadata

    def facts(self) -> Segment:
        """What the metadata of its file should be, by its footer, which does not include masks."""
        with damage_named(self._segment.path):
            return facts(self._segment.path, self._segment.partition, self.footer(), self._file.footer.size_bytes)

    def key_index(self) -> KeyIndex | None:
        """The key index of the file, with masked records; None if it does not have one."""
        return KeyIndex.of(self._file)

    def records_at(self, positions: Integers) -> RecordsAt:
        """Records at ascending positions of the file, which counts those that are masked."""
        return RecordsAt(self._file, self._segment.path, positions)

    def positions(self, row_group: int) -> Integers:
        """The positions in the file of the records of a row group that are left."""
        return np.flatnonzero(self._are_left(row_group)) + self._starts[row_group]

    def left_of(self, positions: Integers) -> tuple[Integers, Integers]:
        """Which of these ascending positions of the file are not masked, and their numbers among the records left."""
        if not self._masked:
            return positions, positions
        masked = np.frombuffer(self._masked.to_array(), np.uint32)
        before = np.searchsorted(masked, positions)
        left = ~np.isin(positions, masked)
        return positions[left], (positions - before)[left]

    def page_sums(self) -> PageSums:
        """A check of its bytes as they pass, by its footer."""
        with damage_named(self._segment.path):
            return PageSums(self._file.footer)

    def end_sum(self) -> EndSum:
        """A check of the bytes behind its row groups as they pass."""
        return EndSum(self._file.footer)

    def check_end(self) -> int:
        """Reads them and checks them. Returns how many it has read."""
        end = self.end_sum()
        if not end.is_there:
            return 0
        with damage_named(self._segment.path):
            return sum(map(len, end.pass_on(self._file.pieces_from(end.start), end.start)))

    def read(self, row_group: int, columns: Sequence[str]) -> pa.Table:
        """These columns of what is left of a row group, with the types of a segment's, in the given order."""
        if not self._hides(row_group):
            return self._read_all(row_group, columns)
        others = [name for name in columns if name != VALUE] or [OFFSET]
        table = _left(self._read_all(row_group, others), self._are_left(row_group))
        if VALUE in columns:
            values = pa.concat_tables(self.pieces(row_group, [VALUE], VALUES_BYTES))
            table = table.append_column(values.field(VALUE), values.column(VALUE))
        return table.select(list(columns))

    def pieces(self, row_group: int, columns: Sequence[str], piece_bytes: int) -> Iterator[pa.Table]:
        """What `read` returns, decoded about so many bytes at a time. A table may be empty."""
        are_left = pa.array(self._are_left(row_group)) if self._hides(row_group) else None
        position = 0
        for table in self._file.pieces(row_group, columns, piece_bytes):
            if HEADERS in columns:
                with damage_named(self._segment.path):
                    table.validate(full=True)  # as in `_read_all`
            yield table if are_left is None else table.filter(are_left.slice(position, table.num_rows))
            position += table.num_rows

    def _hides(self, row_group: int) -> bool:
        """Whether the mask hides any record of a row group."""
        return bool(self._masked) and self.records(row_group) < self.footer().row_group(row_group).num_rows

    def _are_left(self, row_group: int) -> Flags:
        """Of each record of a row group, whether it is left."""
        return ~DeadPositions(self._masked or BitMap()).flags(*self._starts[row_group : row_group + 2])

    def _read_all(self, row_group: int, columns: Sequence[str]) -> pa.Table:
        """With the masked ones."""
        table = self._file.read(row_group, columns)
        if HEADERS in columns:
            with damage_named(self._segment.path):
                table.validate(full=True)  # checks that names of headers are valid UTF-8
        return table

    def compressed_bytes(self, row_group: int, columns: Sequence[str]) -> int:
        """Compressed bytes of these columns of a row group."""
        return sum(chunk.size_bytes for chunk in self._file.footer.of_columns(row_group, columns).values())

    def has_headers(self, row_group: int) -> bool:
        """Whether records of a row group may have headers, by the footer's statistics."""
        group = self.footer().row_group(row_group)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema == HEADER_KEY_PATH and chunk.statistics is not None:
                # Bounds are checked too, so that a single wrong number cannot hide headers.
                return bool(chunk.statistics.null_count != chunk.num_values or chunk.statistics.has_min_max)
        return True

    def first_row_group_at(self, offset: int) -> int:
        """The first row group with a record at or above `offset`, by the footer; `row_groups` if there is none.

        The footer has no checksum, so the last skipped record, masked or not, is read to confirm it (C8).
        """
        if offset <= self._segment.base_offset:
            return 0
        with damage_named(self._segment.path):
            first = next((g for g in range(self.row_groups) if self._largest_offset(g) >= offset), self.row_groups)
            if first > 0 and self._read_all(first - 1, [OFFSET]).column(OFFSET)[-1].as_py() >= offset:
                raise UnsoundFileError(f"the offsets of row group {first - 1} do not match its footer")
        return first

    def _largest_offset(self, row_group: int) -> int:
        """From the footer's statistics."""
        index = SEGMENT_SCHEMA.get_field_index(OFFSET)  # no nested column comes before it
        return int(self.footer().row_group(row_group).column(index).statistics.max)


def _left(table: pa.Table, are_left: Flags) -> pa.Table:
    """The records of a table that are left."""
    flags, rows = pa.array(are_left), pa.array(np.flatnonzero(are_left))

    def left(column: pa.ChunkedArray) -> pa.ChunkedArray:
        if column.null_count == len(column):  # as headers mostly are, which are slow to filter
            return column.slice(0, len(rows))
        return column.take(rows) if pa.types.is_primitive(column.type) else column.filter(flags)  # the faster ones

    return pa.table([left(column) for column in table.columns], schema=table.schema)


def read_segment(
    access: FileAccess, segment: Segment, *, start_offset: int = 0, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The records of a segment from `start_offset` on, in order, one row group at a time; no table is empty.

    Of `columns` those that the segment has; None is all. Raises `DamagedError`.
    """
    with SegmentReader(access, segment) as reader:
        there = reader.schema.names
        columns = there if columns is None else [name for name in columns if name in there]
        for group in range(reader.first_row_group_at(start_offset), reader.row_groups):
            if reader.records(group) == 0:
                continue
            table = reader.read(group, columns if OFFSET in columns else [*columns, OFFSET])
            if start_offset > segment.base_offset:
                table = table.filter(pc.field(OFFSET) >= start_offset)
            if table.num_rows:
                yield table.select(list(columns))


def read_pieces(
    access: FileAccess, segment: Segment, start_offset: int, columns: Sequence[str], piece_bytes: int
) -> Generator[pa.Table, None, None]:
    """The same, about so many bytes at a time; `columns` are some that every segment has, the offset among them."""
    with SegmentReader(access, segment) as reader:
        for group in range(reader.first_row_group_at(start_offset), reader.row_groups):
            if reader.records(group) == 0:
                continue
            for table in reader.pieces(group, columns, piece_bytes):
                left = table.filter(pc.field(OFFSET) >= start_offset) if start_offset > segment.base_offset else table
                if left.num_rows:
                    start_offset = segment.base_offset  # all others are behind it
                    yield left
