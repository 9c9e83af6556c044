"""Reads a segment one row group at a time, with checks before Arrow decodes it.

    footer    sizes, byte ranges, types                 (`parquet.footer`)
    schema    that of a segment
    pages     memory needed to decode them              (`parquet.pages`)

A file that is missing, damaged, or not the one the manifest refers to raises a `DamagedError` that names it
(C8); reading one takes no more memory than a row group of a segment may (C51).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lithify.columnar.files.access import FileAccess, local_path
from lithify.columnar.parquet.footer import Chunk, UnsoundFileError, read_footer
from lithify.columnar.parquet.page_sums import PageSums
from lithify.columnar.parquet.pages import weigh
from lithify.columnar.segment.facts import facts
from lithify.columnar.segment.schema import HEADERS, OFFSET, SEGMENT_SCHEMA, schema_in
from lithify.columnar.segment.writer import HEADER_KEY_PATH, OWN_PATH
from lithify.errors import DamagedError, LithifyError
from lithify.errors.redaction import one_line
from lithify.model.replicas.file_names import was_written_to
from lithify.model.segment import Segment
from lithify.model.settings.units import format_bytes

WHOLE_BYTES = 256 * 2**10
"""Segments in an object store up to this size are read in a single request."""
MOST_GROUP_BYTES = 2**31 + 2**26
"""Largest decoded size of a row group: one record of maximum size, and the rest of a usual row group."""


class SegmentReader:
    """Reads row groups of one segment. A context manager, which holds the file open. Raises `DamagedError`."""

    def __init__(self, access: FileAccess, segment: Segment) -> None:
        self._segment = segment
        self._access = access

    def __enter__(self) -> SegmentReader:
        with damage_named(self._segment.path):
            self._source = self._opened()
            try:
                self._footer = read_footer(self._source)
                self._file = pq.ParquetFile(
                    self._source, metadata=self._footer.metadata, page_checksum_verification=True
                )
                self._check_identity()
            except BaseException:
                self._source.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    def _opened(self) -> Any:
        path, size = self._segment.path, self._segment.size_bytes
        source = self._access.open(path)
        if local_path(path) is not None:
            return source
        if size > WHOLE_BYTES:
            return HeldFile(source)
        with source:
            return pa.BufferReader(source.read(size + 1))  # one byte more, to detect a larger file

    @property
    def schema(self) -> pa.Schema:
        """Its columns, those of its kind of topic."""
        return schema_in(self._file.schema_arrow.names)

    @property
    def row_groups(self) -> int:
        return int(self._file.metadata.num_row_groups)

    @property
    def size_bytes(self) -> int:
        return self._footer.size_bytes

    def footer(self) -> pq.FileMetaData:
        return self._footer.metadata

    def facts(self) -> Segment:
        """What its metadata should say, by its footer."""
        with damage_named(self._segment.path):
            return facts(self._segment.path, self._segment.partition, self._footer.metadata, self.size_bytes)

    def page_sums(self) -> PageSums:
        """A check of its bytes as they pass, by its footer."""
        with damage_named(self._segment.path):
            return PageSums(self._footer)

    def read(self, row_group: int, columns: Sequence[str]) -> pa.Table:
        """These columns of a row group, with the types of a segment's, in the given order."""
        chunks = list(self._footer.of_columns(row_group, columns).values())
        with damage_named(self._segment.path):
            if isinstance(self._source, HeldFile):
                self._source.hold([(chunk.start, chunk.size_bytes) for chunk in chunks])
            most = self._most_bytes(chunks)
            if most > MOST_GROUP_BYTES:
                raise DamagedError(
                    f"{self._segment.path}: row group {row_group} can expand to {format_bytes(most)}, and those that"
                    f" Lithify writes stay below {format_bytes(MOST_GROUP_BYTES)}",
                    hint=RESTORE,
                )
            table = self._file.read_row_group(row_group, columns=list(columns), use_threads=False)
            if HEADERS in columns:
                table.validate(full=True)  # checks that names of headers are valid UTF-8
            return table.select(list(columns))

    def _most_bytes(self, chunks: Sequence[Chunk]) -> int:
        weights = [weigh(self._source.read_at, chunk) for chunk in chunks]
        if any(weight.all_pages_bytes > chunk.expanded_bytes for weight, chunk in zip(weights, chunks, strict=True)):
            raise UnsoundFileError("its pages expand to more than its footer says")
        return sum(weight.most(chunk.values) for weight, chunk in zip(weights, chunks, strict=True))

    def compressed_bytes(self, row_group: int, columns: Sequence[str]) -> int:
        """Compressed bytes of these columns of a row group."""
        return sum(chunk.size_bytes for chunk in self._footer.of_columns(row_group, columns).values())

    def has_headers(self, row_group: int) -> bool:
        """Whether records of a row group may have headers, by the footer's statistics."""
        group = self._file.metadata.row_group(row_group)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema == HEADER_KEY_PATH and chunk.statistics is not None:
                # Bounds are checked too, so that a single wrong number cannot hide headers.
                return bool(chunk.statistics.null_count != chunk.num_values or chunk.statistics.has_min_max)
        return True

    def first_row_group_at(self, offset: int) -> int:
        """The first row group with a record at or above `offset`, by the footer; `row_groups` if there is none.

        The footer has no checksum, so the last skipped record is read to confirm it (C8).
        """
        if offset <= self._segment.base_offset:
            return 0
        with damage_named(self._segment.path):
            first = next((g for g in range(self.row_groups) if self._largest_offset(g) >= offset), self.row_groups)
            if first > 0 and self.read(first - 1, [OFFSET]).column(OFFSET)[-1].as_py() >= offset:
                raise UnsoundFileError(f"row group {first - 1} has other offsets than its footer says")
        return first

    def _largest_offset(self, row_group: int) -> int:
        """From the footer's statistics."""
        index = SEGMENT_SCHEMA.get_field_index(OFFSET)  # no nested column comes before it
        return int(self._file.metadata.row_group(row_group).column(index).statistics.max)

    def _check_identity(self) -> None:
        segment, records = self._segment, self._file.metadata.num_rows
        for what, actual, named in (
            ("bytes", self.size_bytes, segment.size_bytes),
            ("records", records, segment.records),
        ):
            if actual != named:
                raise DamagedError(f"{segment.path}: holds {actual} {what}, the metadata says {named}", hint=RESTORE)
        if not all(self._footer.chunks):
            raise DamagedError(f"{segment.path}: has a row group without records", hint=RESTORE)
        own = (self._file.metadata.metadata or {}).get(OWN_PATH.encode(), b"")  # absent before format 3
        if own and not was_written_to(segment.path, own.decode(errors="replace")):
            raise DamagedError(f"{segment.path}: is a copy of {own.decode(errors='replace')}", hint=RESTORE)
        if not self._file.schema_arrow.equals(self.schema):
            raise DamagedError(f"{segment.path}: its columns are not those of a segment", hint=RESTORE)


RESTORE = "restore the file from a backup or a replica; nothing was changed"


class damage_named:  # noqa: N801 - used as a statement: `with damage_named(path):`
    """Turns exceptions from reading a file into a `DamagedError` that names it.

    Arrow reports damage by a dozen exception types, which cannot be distinguished from defects of Lithify, so
    only code that reads belongs in this block.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise DamagedError(f"{self._path}: the file is missing", hint=RESTORE) from error
        if isinstance(error, (MemoryError, LithifyError)):
            return  # not the file's fault: its sizes were checked before
        if isinstance(error, Exception):
            raise DamagedError(f"{self._path}: the file cannot be read: {_one_line(error)}", hint=RESTORE) from error


def _one_line(error: BaseException) -> str:
    return one_line(str(error), 300) or type(error).__name__


def read_segment(
    access: FileAccess, segment: Segment, *, start_offset: int = 0, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """The records of a segment from `start_offset` on, in order, one row group at a time.

    Of `columns` those that the segment has; None is all. Raises `DamagedError`.
    """
    with SegmentReader(access, segment) as reader:
        there = reader.schema.names
        columns = there if columns is None else [name for name in columns if name in there]
        for group in range(reader.first_row_group_at(start_offset), reader.row_groups):
            table = reader.read(group, columns if OFFSET in columns else [*columns, OFFSET])
            if start_offset > segment.base_offset:
                table = table.filter(pc.field(OFFSET) >= start_offset)
            if table.num_rows:
                yield table.select(list(columns))


class HeldFile:
    """A readable file that buffers the byte ranges last passed to `hold`, compressed as stored."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._held: list[tuple[int, bytes]] = []
        self._at = 0
        self._size = int(source.seek(0, 2))

    def hold(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Reads (start, size) ranges, in bytes, into the buffer, replacing its content."""
        self._held = [(start, self._read(start, size)) for start, size in ranges]

    def read_at(self, size: int, start: int) -> bytes:
        """Reads `size` bytes at `start` without moving the position, as Arrow's `NativeFile.read_at` does."""
        for at, content in self._held:
            if at <= start and start + size <= at + len(content):
                return content[start - at : start - at + size]
        return self._read(start, size)

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._size - self._at if size is None or size < 0 else size
        content = self.read_at(wanted, self._at)
        self._at += len(content)
        return content

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        self._held = []
        self._source.close()

    @property
    def closed(self) -> bool:
        return bool(self._source.closed)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return True

    def _read(self, start: int, size: int) -> bytes:
        self._source.seek(start)
        return bytes(self._source.read(size))
