"""A segment as a Parquet file: writing it, reading it, and the facts that go to the manifest.

    batches ─► SegmentWriter ─► 00000000000000000000-<run>-<attempt>-0.parquet  ─► Segment (facts)
                            └─► 00000000000000131072-<run>-<attempt>-1.parquet  ─► Segment
    row groups of at most ROW_GROUP_RECORDS records and ROW_GROUP_BYTES bytes, so that neither
    writing nor reading one holds more than that.

Encodings are those that every reader of Parquet knows; statistics are kept for what planning
needs, never for values. Pages carry checksums, so that damage is met loudly, not copied on (C8).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lithify.columnar.access import FileAccess, local_path
from lithify.columnar.durable import make_lasting, start_writing
from lithify.columnar.schema import (
    KEY,
    OFFSET,
    PARTITION,
    SEGMENT_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE_SIZE,
)
from lithify.columnar.segment_facts import facts
from lithify.errors import DamagedError, LithifyError
from lithify.model.log import TopicState
from lithify.model.segment import Segment

ROW_GROUP_RECORDS = 128 * 1024
ROW_GROUP_BYTES = 64 * 2**20
WHOLE_BYTES = 256 * 2**10
"""So small a segment in an object store is read in one request, not in one for each of its parts."""
HEADER_KEY_PATH = "headers.list.element.key"
"""Where Parquet keeps the names of headers; its null count tells whether there are any."""

_WITH_STATISTICS = [PARTITION, OFFSET, TIMESTAMP, KEY, VALUE_SIZE, HEADER_KEY_PATH]
_WITH_DICTIONARY = [PARTITION, TIMESTAMP_TYPE, VALUE_SIZE]


@dataclass(frozen=True, slots=True)
class SegmentSpec:
    """How the files of one run are made. `location` is the folder of the topic."""

    location: str
    run_id: str
    partition: int
    segment_bytes: int
    compression: str

    @staticmethod
    def of(state: TopicState, partition: int, run_id: str) -> SegmentSpec:
        """Those of a run on one log of a topic."""
        settings = state.settings
        return SegmentSpec(state.location, run_id, partition, settings.segment_bytes, settings.compression_type)


class SegmentWriter:
    """Writes batches in ascending offset order into one segment, or more above `segment.bytes`.

    `acquire` is called with the bytes of every row group, and of the footer, after they were
    written, which is where a throttle waits. `attempt` is what no other writer of the run has: of two
    that do the same work, neither may touch the files of the other (C6). Not usable after `close`.
    """

    def __init__(
        self, access: FileAccess, spec: SegmentSpec, *, attempt: str, acquire: Callable[[int], None] | None = None
    ) -> None:
        self._access = access
        self._spec = spec
        self._attempt = attempt
        self._acquire = acquire or (lambda _bytes: None)
        self._pending: list[pa.Table] = []
        self._pending_records, self._pending_bytes = 0, 0
        self._file: _OpenFile | None = None
        self._next_offset = 0
        self._segments: list[Segment] = []

    def write(self, batch: pa.Table | pa.RecordBatch) -> None:
        """Takes records with the columns of `SEGMENT_SCHEMA`; their offsets go on ascending."""
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        while table.num_rows:
            piece = table.slice(0, max(1, self._room(table)))
            self._pending.append(piece)
            self._pending_records += piece.num_rows
            self._pending_bytes += piece.nbytes
            table = table.slice(piece.num_rows)
            if self._pending_records >= ROW_GROUP_RECORDS or self._pending_bytes >= ROW_GROUP_BYTES:
                self.flush()

    def close(self) -> tuple[Segment, ...]:
        """Ends the last file and returns the facts of all of them, in offset order."""
        self.flush()
        self._end_file()
        return tuple(self._segments)

    def abandon(self) -> None:
        """Closes what is open after an error. The file stays behind unnamed, for `sweep`."""
        if self._file is None:
            return
        file, self._file = self._file, None
        file.writer.is_open = False  # or its finaliser tries to write the rest, and prints what then fails
        with suppress(OSError, LithifyError):
            file.sink.close()

    def _room(self, table: pa.Table) -> int:
        by_bytes = (ROW_GROUP_BYTES - self._pending_bytes) * table.num_rows // max(1, table.nbytes)
        return int(min(ROW_GROUP_RECORDS - self._pending_records, by_bytes))

    def flush(self) -> None:
        """Writes what is waiting as a row group, however small."""
        if not self._pending:
            return
        group = pa.concat_tables(self._pending)
        self._pending, self._pending_records, self._pending_bytes = [], 0, 0
        offsets = group.column(OFFSET).to_numpy()
        if offsets[0] < self._next_offset or not (np.diff(offsets) > 0).all():
            raise ValueError(f"offsets do not ascend at {offsets[0]} in partition {self._spec.partition}")
        self._next_offset = int(offsets[-1]) + 1
        if self._file is None:
            self._file = self._open(int(offsets[0]))
        before = self._file.sink.tell()
        self._file.writer.write_table(group.cast(SEGMENT_SCHEMA), row_group_size=group.num_rows)
        size = self._file.sink.tell() - before
        start_writing(self._file.path, before, size)
        self._acquire(size)
        if self._file.sink.tell() >= self._spec.segment_bytes:
            self._end_file()

    def _open(self, base_offset: int) -> _OpenFile:
        spec = self._spec
        name = f"{base_offset:020d}-{spec.run_id}-{self._attempt}-{len(self._segments)}.parquet"
        path = f"{spec.location}/data/partition={spec.partition}/{name}"
        sink = self._access.create(path)
        collected: list[pq.FileMetaData] = []
        writer = pq.ParquetWriter(
            sink,
            SEGMENT_SCHEMA,
            compression=spec.compression,
            use_dictionary=_WITH_DICTIONARY,
            write_statistics=_WITH_STATISTICS,
            store_schema=False,
            write_page_checksum=True,
            metadata_collector=collected,
        )
        return _OpenFile(path, sink, writer, collected)

    def _end_file(self) -> None:
        if self._file is None:
            return
        file = self._file
        before = file.sink.tell()
        file.writer.close()
        size = file.sink.tell()
        self._acquire(size - before)
        file.sink.close()
        self._file = None
        make_lasting(file.path)
        self._segments.append(facts(file.path, self._spec.partition, file.collected[0], size))


@dataclass(slots=True)
class _OpenFile:
    path: str
    sink: Any
    writer: pq.ParquetWriter
    collected: list[pq.FileMetaData]


class SegmentReader:
    """Reads row groups of one segment. A context manager: it holds the file open.

    Every way in which the file can fail to be what the metadata says becomes a `DamagedError`
    that names it (C8).
    """

    def __init__(self, access: FileAccess, segment: Segment) -> None:
        self._segment = segment
        self._access = access

    def __enter__(self) -> SegmentReader:
        with damage_named(self._segment.path):
            self._source = self._opened()
            try:
                self.size_bytes = self._source.seek(0, 2)
                self._file = pq.ParquetFile(self._source, page_checksum_verification=True)
                self._check_footer()
            except BaseException:
                self._source.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()

    def _opened(self) -> Any:
        source = self._access.open(self._segment.path)
        if self._segment.size_bytes > WHOLE_BYTES or local_path(self._segment.path) is not None:
            return source
        with source:
            return pa.BufferReader(source.read())

    @property
    def row_groups(self) -> int:
        return int(self._file.metadata.num_row_groups)

    def footer(self) -> pq.FileMetaData:
        return self._file.metadata

    def read(self, row_group: int, columns: Sequence[str]) -> pa.Table:
        """Some columns of a row group, as `SEGMENT_SCHEMA` types them, in the order asked for."""
        with damage_named(self._segment.path):
            return self._file.read_row_group(row_group, columns=list(columns), use_threads=False).select(list(columns))

    def compressed_bytes(self, row_group: int, columns: Sequence[str]) -> int:
        """Bytes that reading these columns of a row group takes from storage."""
        group = self._file.metadata.row_group(row_group)
        chunks = (group.column(i) for i in range(group.num_columns))
        return sum(c.total_compressed_size for c in chunks if c.path_in_schema.partition(".")[0] in columns)

    def has_headers(self, row_group: int) -> bool:
        """Whether a record of a row group may have headers."""
        group = self._file.metadata.row_group(row_group)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema == HEADER_KEY_PATH and chunk.statistics is not None:
                return bool(chunk.statistics.null_count != chunk.num_values)
        return True

    def first_row_group_at(self, offset: int) -> int:
        """The first row group with an offset at or above `offset`; `row_groups` if there is none."""
        metadata = self._file.metadata
        index = metadata.schema.to_arrow_schema().get_field_index(OFFSET)
        for group in range(metadata.num_row_groups):
            if metadata.row_group(group).column(index).statistics.max >= offset:
                return group
        return self.row_groups

    def _check_footer(self) -> None:
        records = self._file.metadata.num_rows
        if records != self._segment.records:
            raise DamagedError(
                f"{self._segment.path}: holds {records} records, the metadata says {self._segment.records}",
                hint=_RESTORE,
            )


_RESTORE = "restore the file from a backup or a replica; nothing was changed"


class damage_named:  # noqa: N801 - used as a statement: `with damage_named(path):`
    """Turns an error of reading a file into a `DamagedError` that names it."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, FileNotFoundError):
            raise DamagedError(f"{self._path}: the file is missing", hint=_RESTORE) from error
        if isinstance(error, MemoryError):
            return  # of this machine, and not of the file
        if isinstance(error, (pa.ArrowException, OSError, KeyError)):
            raise DamagedError(f"{self._path}: the file cannot be read: {_one_line(error)}", hint=_RESTORE) from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]


def read_segment(
    access: FileAccess, segment: Segment, *, start_offset: int = 0, columns: Sequence[str] = SEGMENT_SCHEMA.names
) -> Iterator[pa.Table]:
    """The records of a segment from `start_offset` on, a row group at a time."""
    with SegmentReader(access, segment) as reader:
        for group in range(reader.first_row_group_at(start_offset), reader.row_groups):
            table = reader.read(group, columns if OFFSET in columns else [*columns, OFFSET])
            if start_offset > segment.base_offset:
                table = table.filter(pc.field(OFFSET) >= start_offset)
            if table.num_rows:
                yield table.select(list(columns))
