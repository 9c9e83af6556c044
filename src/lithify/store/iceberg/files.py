"""`SegmentFiles` on Iceberg: segments as Parquet files in the folder of their topic.

receive   columnar.arrivals: checked and sorted to partitions, as whole columns
write     columnar.segment.writer: named by no version until a commit does
read      a row group at a time

What a method does it imports itself: PyArrow and NumPy take a quarter of a second, and many verbs need none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lithify.columnar.files.access import FileAccess, local_path
from lithify.errors import LithifyError
from lithify.model.finding import Finding
from lithify.model.replicas.file_names import copied_name
from lithify.model.segment import Segment
from lithify.model.staged import Destination
from lithify.model.topic.state import TopicState
from lithify.ports.files import Arrivals
from lithify.rules.compaction.survivor_rules import SurvivorRules
from lithify.rules.reading.group_lag import Left
from lithify.store.iceberg.catalog.embedded import CatalogSource
from lithify.store.iceberg.io.folders import free_bytes
from lithify.store.iceberg.reaching import writing

if TYPE_CHECKING:
    from pyroaring import BitMap

    from lithify.store.iceberg.batches import ArrowArrivals, ArrowBatch

LOOKUPS_AT_ONCE = 16
"""Concurrent requests when a remote warehouse is asked for missing files."""

LATEST_MEMORY_BYTES = 2**30
"""Memory for finding the latest records, for any keys, in bytes."""


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
        from lithify.columnar.arrivals.incoming import receive
        from lithify.store.iceberg.batches import ArrowArrivals

        tables = receive(batch, Destination.of(state), now_ms=now_ms, keep_offsets=keep_offsets)
        return {partition: ArrowArrivals(table, 0, table.num_rows) for partition, table in tables.items()}

    def receive_each(
        self, state: TopicState, batches: Sequence[Any], *, now_ms: int
    ) -> Sequence[Mapping[int, ArrowArrivals] | LithifyError]:
        from lithify.columnar.arrivals.receiving import receive_each
        from lithify.store.iceberg.batches import ArrowArrivals

        received = receive_each(batches, Destination.of(state), now_ms=now_ms)
        return [
            one
            if isinstance(one, LithifyError)
            else {partition: ArrowArrivals(share.table, share.start, share.records) for partition, share in one.items()}
            for one in received
        ]

    def joined(self, arrivals: Sequence[Arrivals]) -> ArrowArrivals:
        from lithify.store.iceberg.batches import ArrowArrivals

        some = [arriving for arriving in arrivals if isinstance(arriving, ArrowArrivals)]
        assert len(some) == len(arrivals)  # as `receive` gave them
        return ArrowArrivals.joined(some)

    def write(self, state: TopicState, arrivals: Arrivals, base_offset: int, run_id: str) -> tuple[Segment, ...]:
        """Raises `WarehouseError` if nothing can be written."""
        from lithify.columnar.arrivals.incoming import with_offsets
        from lithify.columnar.segment.schema import PARTITION
        from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
        from lithify.store.iceberg.batches import ArrowArrivals

        assert isinstance(arrivals, ArrowArrivals)  # as `receive` gave them
        keeps = arrivals.first_offset is not None
        table = arrivals.rows if keeps else with_offsets(arrivals.rows, base_offset)
        spec = SegmentSpec.of(state, table.column(PARTITION)[0].as_py(), run_id)
        attempt = f"v{state.version}"  # a run may write again for another version
        with writing(str(state.name)), SegmentWriter(self.access, spec, attempt=attempt) as writer:
            writer.write(table)
            return writer.close()

    def read(self, segment: Segment, start_offset: int) -> Iterator[ArrowBatch]:
        """Raises `DamagedError`."""
        from lithify.columnar.segment.segment_reader import read_segment
        from lithify.store.iceberg.batches import ArrowBatch

        return map(ArrowBatch, read_segment(self.access, segment, start_offset=start_offset))

    def read_pieces(
        self, segment: Segment, start_offset: int, columns: Sequence[str], piece_bytes: int
    ) -> Generator[Any, None, None]:
        """Raises `DamagedError`."""
        from lithify.columnar.segment.segment_reader import read_pieces

        return read_pieces(self.access, segment, start_offset, columns, piece_bytes)

    def left(self, segment: Segment, start_offset: int) -> Left:
        """Reads two columns. Raises `DamagedError`."""
        import pyarrow.compute

        from lithify.columnar.segment.schema import OFFSET, TIMESTAMP
        from lithify.columnar.segment.segment_reader import read_segment

        tables = read_segment(self.access, segment, start_offset=start_offset, columns=[OFFSET, TIMESTAMP])
        parts = (Left(table.num_rows, pyarrow.compute.min(table.column(TIMESTAMP)).as_py()) for table in tables)
        return sum(parts, Left())

    def latest(
        self, segments: Sequence[Segment], rules: SurvivorRules, key: bytes | None = None
    ) -> Iterator[ArrowBatch]:
        """Raises `DamagedError`."""
        from lithify.store.iceberg.batches import ArrowBatch, marked

        if key is not None:
            from lithify.columnar.lookup.latest import latest_of_key

            record = latest_of_key(self.access, segments, rules, key)
            yield from () if record is None else (ArrowBatch(record),)
            return
        from lithify.columnar.keypass.winners import WinnerFinder, latest_offsets
        from lithify.columnar.segment.schema import OFFSET
        from lithify.columnar.segment.segment_reader import read_segment

        in_order = tuple(sorted(segments, key=lambda s: s.base_offset))
        finder = WinnerFinder(LATEST_MEMORY_BYTES, self._new_id())
        live = latest_offsets(self.access, in_order, rules, finder)
        for segment in in_order:
            if not live.range_cardinality(segment.base_offset, segment.end_offset):
                continue
            for table in read_segment(self.access, segment):
                rows = table.filter(marked(live, table.column(OFFSET).to_numpy()))
                if rows.num_rows:
                    yield ArrowBatch(rows)

    def cut(self, state: TopicState, segment: Segment, end_offset: int, run_id: str) -> tuple[Segment, ...]:
        """Raises `DamagedError`, or `WarehouseError` if nothing can be written."""
        from lithify.columnar.rewrite import cut
        from lithify.columnar.segment.writer import SegmentSpec

        with writing(str(state.name)):
            return cut(self.access, SegmentSpec.of(state, segment.partition, run_id), segment, end_offset)

    def masked(self, state: TopicState, segment: Segment, dead: Collection[int], run_id: str) -> Segment:
        """Raises `DamagedError`, or `WarehouseError` if nothing can be written."""
        from lithify.columnar.rewrite import mask_offsets
        from lithify.columnar.segment.writer import SegmentSpec

        with writing(str(state.name)):
            return mask_offsets(self.access, SegmentSpec.of(state, segment.partition, run_id), segment, dead)

    def pieces(self, segment: Segment) -> Iterator[bytes]:
        """Raises `DamagedError`."""
        from lithify.columnar.segment.file_pieces import stored_pieces

        return stored_pieces(self.access, segment)

    def checked_pieces(self, segment: Segment) -> Iterator[bytes]:
        """Raises `DamagedError`."""
        from lithify.columnar.segment.file_pieces import checked_pieces

        return checked_pieces(self.access, segment)

    def copy(self, state: TopicState, segment: Segment, pieces: Iterable[bytes], run_id: str) -> Segment:
        """Raises `WarehouseError` if nothing can be written."""
        from lithify.columnar.segment.file_pieces import write_pieces

        path = f"{state.location}/data/partition={segment.partition}/{copied_name(segment.path, run_id)}"
        with writing(state.location):
            write_pieces(self.access, path, pieces)
        return replace(segment, path=path)

    def hidden(self, segment: Segment) -> BitMap:
        """Raises `DamagedError`."""
        from lithify.columnar.segment.mask_file import read_mask

        return read_mask(self.access, segment)

    def copy_mask(self, state: TopicState, segment: Segment, hidden: BitMap, run_id: str) -> Segment:
        """Raises `WarehouseError` if nothing can be written."""
        from lithify.columnar.segment.mask_file import copy_mask

        assert segment.mask is not None
        name = copied_name(segment.mask.path, run_id)
        path = f"{state.location}/data/partition={segment.partition}/{name}"
        with writing(state.location):
            return replace(segment, mask=copy_mask(self.access, path, state.location, segment, hidden))

    def findings(self, segment: Segment) -> tuple[Finding, ...]:
        """What is wrong with a file and its mask: pages are checked by their checksums, facts by the metadata."""
        from lithify.columnar.segment.inspect import inspect_segment  # starts DuckDB

        return tuple(one for one in inspect_segment(self.access, segment, None, None) if isinstance(one, Finding))

    def missing(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Raises `WarehouseError` if the warehouse cannot be asked."""
        with writing(self._source.where):
            if all(local_path(path) is not None for path in paths):  # no threads for what takes microseconds
                return tuple(path for path in paths if not self._exists(path))
            with ThreadPoolExecutor(LOOKUPS_AT_ONCE) as pool:
                there = list(pool.map(self._exists, paths))
            return tuple(path for path, is_there in zip(paths, there, strict=True) if not is_there)

    def free_bytes(self, state: TopicState) -> int | None:
        return free_bytes(state.location)

    def _exists(self, path: str) -> bool:
        local = local_path(path)
        if local is not None:
            return Path(local).is_file()
        from pyiceberg.io import load_file_io

        return load_file_io(dict(self.access.properties), path).new_input(path).exists()
