"""Writes segments as Parquet files and returns their facts for the manifest.

    batches ─► SegmentWriter ─► 00000000000000000000-<run>-<attempt>-0.parquet  ─► Segment (facts)
                            └─► 00000000000000131072-<run>-<attempt>-1.parquet  ─► Segment
    row groups of at most ROW_GROUP_RECORDS records and about ROW_GROUP_BYTES bytes bound the memory of
    writers and readers.

Uses encodings that every Parquet reader supports. Statistics are written for what planning needs, never for
values. Pages have checksums, so that damage is detected and not copied (C8).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lithify.columnar.files.access import FileAccess
from lithify.columnar.files.durable import make_lasting, start_writing
from lithify.columnar.keyindex.building import KeyIndexBuilder
from lithify.columnar.keyindex.layout import ENTRY
from lithify.columnar.parquet.end_sum import SummedEnd
from lithify.columnar.segment.checked_file import OWN_PATH, own_path
from lithify.columnar.segment.chunk_keys import has_only_chunks
from lithify.columnar.segment.facts import ONLY_CHUNKS, facts
from lithify.columnar.segment.schema import (
    BATCH_INDEX,
    ENTRY_ID,
    KEY,
    LEDGER_ID,
    OFFSET,
    PARTITION,
    PASSED_THROUGH,
    SEGMENT_SCHEMA,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE_SIZE,
    schema_of,
)
from lithify.errors import LithifyError
from lithify.model.segment import Segment
from lithify.model.staged import Destination
from lithify.model.topic.state import TopicState

ROW_GROUP_RECORDS = 128 * 1024
ROW_GROUP_BYTES = 64 * 2**20
PAGE_BYTES = 64 * 2**10
"""Of files with an index of keys, in which single pages are read: as soon as one has so much, it ends."""
PAGE_RECORDS, PAGE_RECORDS_OF_LARGE, LARGE_BYTES = 4096, 1024, 512
"""After this many records Arrow checks whether a page is full, after fewer if records are large. It makes one page of
values each time, and many short pages make full reads slower."""
LARGE_PAGE_BYTES = 2**20
"""It checks after this many bytes if these are fewer records. Else a page of large values would be a whole row group,
and every reader would take memory for it at once."""
HEADER_KEY_PATH = "headers.list.element.key"
"""The Parquet column of header names; its null count shows whether any record has headers."""

_WITH_STATISTICS = [PARTITION, OFFSET, TIMESTAMP, KEY, VALUE_SIZE, HEADER_KEY_PATH, LEDGER_ID, ENTRY_ID, PASSED_THROUGH]
_WITH_DICTIONARY = [PARTITION, TIMESTAMP_TYPE, VALUE_SIZE, LEDGER_ID, ENTRY_ID, BATCH_INDEX]


@dataclass(frozen=True, slots=True)
class SegmentSpec:
    """How one run writes segments of one log. `location` is the folder of the topic."""

    location: str
    run_id: str
    partition: int
    segment_bytes: int
    compression: str
    schema: pa.Schema = SEGMENT_SCHEMA
    indexes_keys: bool = False

    @staticmethod
    def of(topic: TopicState | Destination, partition: int, run_id: str) -> SegmentSpec:
        """The spec of a run on one log of a topic."""
        settings = topic.settings
        return SegmentSpec(
            topic.location,
            run_id,
            partition,
            settings.segment_bytes,
            settings.compression_type,
            schema_of(settings),
            settings.indexes_keys,
        )


class SegmentWriter:
    """Writes batches in ascending offset order to one segment, or more above `segment.bytes`.

    `acquire`, a throttle, is called with the bytes of each row group and footer after they were written.
    `attempt` is unique among the writers of a run, so that two attempts at the same work write different
    files (C6). Not usable after `close`. A context manager, which on an error closes the open file and leaves it
    unreferenced for `sweep`.
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
        """Adds records with the columns of the spec's schema, with ascending offsets above all written before.

        Raises `ValueError` for other offsets, `OSError` or `WarehouseError`.
        """
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        while table.num_rows:
            piece = self._piece(table)
            self._pending.append(piece)
            self._pending_records += piece.num_rows
            self._pending_bytes += piece.nbytes
            table = table.slice(piece.num_rows)
            if self._pending_records >= ROW_GROUP_RECORDS or self._pending_bytes >= ROW_GROUP_BYTES:
                self.flush()

    def close(self) -> tuple[Segment, ...]:
        """Writes what is buffered and returns all segments in offset order. Raises as `write`."""
        self.flush()
        self._end_file()
        return tuple(self._segments)

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            self.abandon()

    def abandon(self) -> None:
        """Closes the open file after an error."""
        if self._file is None:
            return
        file, self._file = self._file, None
        file.writer.is_open = False  # else its finaliser tries to write the rest, and prints the failure
        with suppress(OSError, LithifyError):
            file.sink.close()

    def _piece(self, table: pa.Table) -> pa.Table:
        """The first rows of `table` for the buffered row group: by mean size, fewer if they are far larger."""
        piece = table.slice(0, max(1, self._room(table)))
        while piece.num_rows > 1 and piece.nbytes > 2 * ROW_GROUP_BYTES:
            piece = piece.slice(0, piece.num_rows // 2)
        return piece

    def _room(self, table: pa.Table) -> int:
        by_bytes = (ROW_GROUP_BYTES - self._pending_bytes) * table.num_rows // max(1, table.nbytes)
        return int(min(ROW_GROUP_RECORDS - self._pending_records, by_bytes))

    def flush(self) -> None:
        """Writes the buffered records as a row group, of any size. Raises as `write`."""
        if not self._pending:
            return
        group = pa.concat_tables(self._pending)
        self._pending, self._pending_records, self._pending_bytes = [], 0, 0
        offsets = group.column(OFFSET).to_numpy()
        if offsets[0] < self._next_offset or not (np.diff(offsets) > 0).all():
            raise ValueError(f"offsets do not ascend at {offsets[0]} in partition {self._spec.partition}")
        self._next_offset = int(offsets[-1]) + 1
        if self._file is None:
            self._file = self._open(int(offsets[0]), group.nbytes / group.num_rows)
        before = self._file.sink.tell()
        self._file.note_entries(group)
        group = group.cast(self._spec.schema)
        self._file.note_keys(group)
        self._file.writer.write_table(group, row_group_size=group.num_rows)
        size = self._file.sink.tell() - before
        start_writing(self._file.path, before, size)
        self._acquire(size)
        if self._file.sink.tell() >= self._spec.segment_bytes:
            self._end_file()

    def _open(self, base_offset: int, record_bytes: float) -> _OpenFile:
        spec = self._spec
        name = f"{base_offset:020d}-{spec.run_id}-{self._attempt}-{len(self._segments)}.parquet"
        path = f"{spec.location}/data/partition={spec.partition}/{name}"
        sink = self._access.create(path)
        end = SummedEnd(sink) if spec.indexes_keys else None
        if end is not None or not isinstance(sink, pa.NativeFile):
            sink = pa.PythonFile(end or sink, "w")  # it counts what is written for Parquet's writer, also the index
        collected: list[pq.FileMetaData] = []
        looked = PAGE_RECORDS if spec.indexes_keys and record_bytes < LARGE_BYTES else PAGE_RECORDS_OF_LARGE
        writer = pq.ParquetWriter(
            sink,
            spec.schema,
            compression=spec.compression,
            use_dictionary=_WITH_DICTIONARY,
            write_statistics=_WITH_STATISTICS,
            store_schema=False,
            write_page_checksum=True,
            metadata_collector=collected,
            write_batch_size=min(looked, max(1, int(LARGE_PAGE_BYTES / record_bytes))),
            **({"data_page_size": PAGE_BYTES, "write_page_index": True} if spec.indexes_keys else {}),
        )
        name = own_path(path, spec.location)
        writer.add_key_value_metadata({OWN_PATH: name})
        indexed = None if end is None else _Indexed(KeyIndexBuilder(name), end)
        return _OpenFile(path, sink, writer, collected, indexed)

    def _end_file(self) -> None:
        if self._file is None:
            return
        file = self._file
        before = file.sink.tell()
        if file.only_chunks:
            file.writer.add_key_value_metadata({ONLY_CHUNKS: b"true"})
        if file.indexed is None:
            file.writer.close()
            size = file.sink.tell()
        else:
            size = file.indexed.close(file.writer, file.sink)
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
    indexed: _Indexed | None
    only_chunks: bool | None = None
    """Whether all that is passed through are chunks (C53); None as long as nothing is."""

    def note_entries(self, group: pa.Table) -> None:
        """Takes note of the whole entries of a row group that is written."""
        if PASSED_THROUGH in group.column_names and self.only_chunks is not False:
            only_chunks = has_only_chunks(group)
            self.only_chunks = self.only_chunks if only_chunks is None else only_chunks

    def note_keys(self, group: pa.Table) -> None:
        """Takes the keys of a row group that is written into the index."""
        if self.indexed is not None:
            for batch in group.select([KEY, VALUE_SIZE]).to_batches():
                self.indexed.keys.add(batch.column(KEY), batch.column(VALUE_SIZE))


@dataclass(frozen=True, slots=True)
class _Indexed:
    """What a file with an index of its keys has besides its records."""

    keys: KeyIndexBuilder
    end: SummedEnd

    def close(self, writer: pq.ParquetWriter, sink: Any) -> int:
        """Writes all that comes after the records. Returns the size of the file."""
        self.end.begin()
        if entry := self.keys.write_to(sink):
            writer.add_key_value_metadata({ENTRY: entry})
        self.end.hold()
        writer.close()
        return int(sink.tell()) + self.end.finish()
