"""`SegmentFiles` on Iceberg: segments as Parquet files in the folder of their topic.

receive   columnar.arrivals: checked and sorted to partitions, as whole columns
write     columnar.segment.writer: named by no version until a commit does
read      a row group at a time
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import load_file_io
from pyroaring import BitMap64

from lithify.columnar.arrivals import incoming
from lithify.columnar.arrivals.message_ids import ids_of, reached
from lithify.columnar.files.access import FileAccess, local_path
from lithify.columnar.rewrite import cut
from lithify.columnar.segment.convert import to_records
from lithify.columnar.segment.file_pieces import checked_pieces, stored_pieces, write_pieces
from lithify.columnar.segment.schema import OFFSET, PARTITION, TIMESTAMP
from lithify.columnar.segment.segment_reader import read_segment
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.model.finding import Finding
from lithify.model.message import MessageId
from lithify.model.record import Record
from lithify.model.replicas.file_names import copied_name
from lithify.model.segment import Segment
from lithify.model.staged import Destination
from lithify.model.topic.state import TopicState
from lithify.ports.files import Arrivals
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.reading.group_lag import Left
from lithify.store.iceberg.catalog.embedded import CatalogSource
from lithify.store.iceberg.error_mapping import writing
from lithify.store.iceberg.io.folders import free_bytes

LOOKUPS_AT_ONCE = 16
"""Concurrent requests when a remote warehouse is asked for missing files."""

LATEST_MEMORY_BYTES = 2**30
"""Memory for finding the latest records, for any keys, in bytes."""


@dataclass(frozen=True, slots=True)
class ArrowBatch:
    """Records of one segment, in offset order, as a table with the columns of a segment."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def end_offset(self) -> int:
        return int(self.table.column(OFFSET)[-1].as_py()) + 1

    def records(self) -> Iterator[Record]:
        return to_records(self.table)

    def below(self, end_offset: int) -> ArrowBatch:
        return self if self.end_offset <= end_offset else ArrowBatch(self.table.filter(pc.field(OFFSET) < end_offset))

    def offset_at(self, timestamp_ms: int) -> int | None:
        late = np.flatnonzero(self.table.column(TIMESTAMP).to_numpy() >= timestamp_ms)
        return int(self.table.column(OFFSET)[late[0]].as_py()) if len(late) else None

    def offset_of(self, sought: MessageId) -> int | None:
        rows = np.flatnonzero(reached(self.table, sought))
        return int(self.table.column(OFFSET)[rows[0]].as_py()) if len(rows) else None

    def to_arrow(self) -> pa.Table:
        return self.table


@dataclass(frozen=True, slots=True)
class ArrowArrivals:
    """Records to append to one log; without the column `offset` until they are written."""

    table: pa.Table

    @property
    def records(self) -> int:
        return int(self.table.num_rows)

    @property
    def first_offset(self) -> int | None:
        return self.table.column(OFFSET)[0].as_py() if OFFSET in self.table.column_names else None

    @property
    def last_timestamp_ms(self) -> int:
        return int(self.table.column(TIMESTAMP)[-1].as_py())

    @property
    def message_ids(self) -> tuple[MessageId, MessageId] | None:
        return ids_of(self.table)


class IcebergFiles:
    """`SegmentFiles` of the topics of a catalog."""

    def __init__(self, source: CatalogSource, new_id: Callable[[], str]) -> None:
        self._source = source
        self._new_id = new_id

    @cached_property
    def access(self) -> FileAccess:
        """How to open the warehouse's files: a small value that travels to Spark tasks."""
        return FileAccess(self._source.io_properties)

    def receive(self, state: TopicState, batch: Any, *, now_ms: int, keep_offsets: bool) -> Mapping[int, ArrowArrivals]:
        """Raises `InvalidRecordError` for the first refused record, or `InvalidInputError`."""
        tables = incoming.receive(batch, Destination.of(state), now_ms=now_ms, keep_offsets=keep_offsets)
        return {partition: ArrowArrivals(table) for partition, table in tables.items()}

    def write(self, state: TopicState, arrivals: Arrivals, base_offset: int, run_id: str) -> tuple[Segment, ...]:
        """Raises `WarehouseError` where nothing can be written."""
        assert isinstance(arrivals, ArrowArrivals)  # as `receive` gave them
        keeps = arrivals.first_offset is not None
        table = arrivals.table if keeps else incoming.with_offsets(arrivals.table, base_offset)
        spec = SegmentSpec.of(state, table.column(PARTITION)[0].as_py(), run_id)
        attempt = f"v{state.version}"  # a run may write again for another version
        with writing(str(state.name)), SegmentWriter(self.access, spec, attempt=attempt) as writer:
            writer.write(table)
            return writer.close()

    def read(self, segment: Segment, start_offset: int) -> Iterator[ArrowBatch]:
        """Raises `DamagedError`."""
        return map(ArrowBatch, read_segment(self.access, segment, start_offset=start_offset))

    def left(self, segment: Segment, start_offset: int) -> Left:
        """Reads two columns. Raises `DamagedError`."""
        tables = read_segment(self.access, segment, start_offset=start_offset, columns=[OFFSET, TIMESTAMP])
        parts = (Left(table.num_rows, pc.min(table.column(TIMESTAMP)).as_py()) for table in tables)
        return sum(parts, Left())

    def latest(self, segments: Sequence[Segment], rules: SurvivorRules) -> Iterator[ArrowBatch]:
        """The records of one log that survive `rules`, in offset order. Raises `DamagedError`."""
        from lithify.columnar.keypass.winners import WinnerFinder, latest_offsets

        in_order = tuple(sorted(segments, key=lambda s: s.base_offset))
        finder = WinnerFinder(LATEST_MEMORY_BYTES, self._new_id())
        live = latest_offsets(self.access, in_order, rules, finder)
        for segment in in_order:
            if not live.range_cardinality(segment.base_offset, segment.end_offset):
                continue
            for table in read_segment(self.access, segment):
                rows = table.filter(_marked(live, table.column(OFFSET).to_numpy()))
                if rows.num_rows:
                    yield ArrowBatch(rows)

    def cut(self, state: TopicState, segment: Segment, end_offset: int, run_id: str) -> tuple[Segment, ...]:
        """Raises `DamagedError`, or `WarehouseError` where nothing can be written."""
        with writing(str(state.name)):
            return cut(self.access, SegmentSpec.of(state, segment.partition, run_id), segment, end_offset)

    def pieces(self, segment: Segment) -> Iterator[bytes]:
        """Raises `DamagedError`."""
        return stored_pieces(self.access, segment)

    def checked_pieces(self, segment: Segment) -> Iterator[bytes]:
        """Raises `DamagedError`."""
        return checked_pieces(self.access, segment)

    def copy(self, state: TopicState, segment: Segment, pieces: Iterable[bytes], run_id: str) -> Segment:
        """Raises `WarehouseError` where nothing can be written."""
        path = f"{state.location}/data/partition={segment.partition}/{copied_name(segment.path, run_id)}"
        with writing(state.location):
            write_pieces(self.access, path, pieces)
        return replace(segment, path=path)

    def findings(self, segment: Segment) -> tuple[Finding, ...]:
        """What is wrong with a file: its pages are checked against their checksums, its facts against the metadata."""
        from lithify.columnar.segment.inspect import inspect_segment  # starts DuckDB

        return tuple(one for one in inspect_segment(self.access, segment, None, None) if isinstance(one, Finding))

    def missing(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Raises `WarehouseError` where the warehouse cannot be asked."""
        with writing(self._source.where), ThreadPoolExecutor(LOOKUPS_AT_ONCE) as pool:
            return tuple(path for path, there in zip(paths, pool.map(self._exists, paths), strict=True) if not there)

    def free_bytes(self, state: TopicState) -> int | None:
        return free_bytes(state.location)

    def _exists(self, path: str) -> bool:
        local = local_path(path)
        if local is not None:
            return Path(local).is_file()
        return load_file_io(dict(self.access.properties), path).new_input(path).exists()


def _marked(live: BitMap64, offsets: npt.NDArray[np.int64]) -> pa.Array:
    """Which of some ascending offsets are in a bitmap, also if they are far apart."""
    below = live.rank(int(offsets[0])) - (int(offsets[0]) in live)
    within = live[below : live.rank(int(offsets[-1]))].to_array()
    return pa.array(np.isin(offsets, np.frombuffer(within, np.uint64).astype(np.int64), assume_unique=True))
