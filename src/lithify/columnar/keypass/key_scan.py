"""Reads the keys of segments for the key pass, and decides on records that need no comparison.

    Parquet: key, offset, value size ──► settled here: below the log start (C26), keyless (C16)
             and columns with orders └─► (key, rank, order) of all others, to be compared by key

Values are never read (C38), other columns only if they can matter (`key_rows`). Keys above the horizon are
read only for expired tombstones (C20), and only if orders decide. Keys of chunks, in their metadata, are read for the
same tombstones (C53).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keypass.indexed_keys import IndexedKeys
from lithify.columnar.keypass.key_rows import ScannedRows, ScannedSegment
from lithify.columnar.keypass.ranks import ONLY_ASKED, ORDERED_KEYS, RANKED_KEYS, Flags, Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.pace import unthrottled
from lithify.columnar.segment.convert import pieces
from lithify.columnar.segment.dead_records import DeadRecords, ordinal_starts
from lithify.columnar.segment.schema import HEADERS
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.model.segment import Segment
from lithify.rules.compaction.survivor_rules import SurvivorRules

PIECE_BYTES = 4 * 2**20
"""Bytes per piece of keys: small, so that `dirty_read` is precise when memory is full."""

LARGE_BYTES = 16 * 2**20
"""After a row group with so many bytes of keys memory is given back to the system, as Arrow's allocator would keep it.
"""


@dataclass(frozen=True, slots=True)
class LogScan:
    """The part of one log that a key pass reads.

    `clean` are the scanned segments below the first dirty offset, `dirty` all from there to the horizon, and
    `above_horizon` the segments above it that are read for C20, each in offset order. `chunks` are the segments below
    it that are read for C53, once more if they are scanned. `step_ends` are the end offsets of the log's tombstone
    steps.
    """

    rules: SurvivorRules
    clean: tuple[Segment, ...]
    dirty: tuple[Segment, ...]
    step_ends: tuple[int, ...] = ()
    above_horizon: tuple[Segment, ...] = ()
    chunks: tuple[Segment, ...] = ()
    first_ordinal: int = 0

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments that can lose records, in offset order; ordinals number their records."""
        return self.clean + self.dirty

    def of(self, portion: Portion) -> tuple[Segment, ...]:
        match portion:
            case Portion.CLEAN:
                return self.clean
            case Portion.DIRTY:
                return self.dirty
            case Portion.ABOVE_HORIZON:
                return self.above_horizon
            case Portion.CHUNKS:
                return self.chunks

    def pieces(self) -> Iterator[tuple[Portion, LogScan]]:
        """Scans of one segment each, in the order of `segments`, then of `above_horizon` and of `chunks`."""
        starts = ordinal_starts(self.segments, self.first_ordinal)
        alone = replace(self, clean=(), dirty=(), above_horizon=(), chunks=())
        for segment, first in zip(self.clean, starts[: len(self.clean)], strict=True):
            yield Portion.CLEAN, replace(alone, clean=(segment,), first_ordinal=int(first))
        for segment, first in zip(self.dirty, starts[len(self.clean) : -1], strict=True):
            yield Portion.DIRTY, replace(alone, dirty=(segment,), first_ordinal=int(first))
        for segment in self.above_horizon:
            yield Portion.ABOVE_HORIZON, replace(alone, above_horizon=(segment,))
        for segment in self.chunks:
            yield Portion.CHUNKS, replace(alone, chunks=(segment,))


def keys_schema(rules: SurvivorRules) -> pa.Schema:
    """The columns to compare under `rules`: with an order unless the strategy is `offset` (C10)."""
    return ORDERED_KEYS if rules.is_ordered else RANKED_KEYS


class KeyScan:
    """One pass over the keys of a log, for one hash range. A `KeySource`.

    With `settles` it also counts and collects records that need no comparison; exactly one range of a log
    does so. `acquire`, a throttle, is called with compressed bytes before they are read, or after few.
    """

    def __init__(
        self, access: FileAccess, log: LogScan, *, settles: bool, acquire: Callable[[int], None] = unthrottled
    ) -> None:
        self.schema = keys_schema(log.rules)
        self.starts = ordinal_starts(log.segments, log.first_ordinal)
        self.tally = Tally()
        self.dead = DeadRecords(self.starts)
        self._access = access
        self._log = log
        self._settles = settles
        self._acquire = acquire
        self._dirty_rows = 0

    @property
    def dirty_read(self) -> float:
        return self._dirty_rows / max(1, sum(segment.records for segment in self._log.dirty))

    def has(self, portion: Portion) -> bool:
        return bool(self._log.of(portion))

    def keys(self, portion: Portion, wanted: pa.Array | None = None) -> Iterator[pa.RecordBatch]:
        """Batches of `schema`: the records of a portion to compare. Raises `DamagedError`."""
        first = len(self._log.clean) if portion is Portion.DIRTY else 0
        for index, segment in enumerate(self._log.of(portion), first):
            ordinal = 0 if portion in ONLY_ASKED else int(self.starts[index])
            scanned = ScannedSegment(segment, portion, self._log.rules, self._log.step_ends)
            self._take(segment.mask_bytes)
            with SegmentReader(self._access, segment) as reader:
                for rows in self._rows(reader, scanned, ordinal, wanted):
                    yield from self._settled(rows, portion)
                    is_large = rows.held_bytes >= LARGE_BYTES
                    del rows  # so that memory does not hold two row groups while the next is read
                    if is_large:
                        pa.default_memory_pool().release_unused()

    def _settled(self, rows: ScannedRows, portion: Portion) -> Iterator[pa.RecordBatch]:
        if self._settles:
            self._settle(rows, portion)
        before = self._dirty_rows
        for batch in pieces(rows.to_compare(), PIECE_BYTES):
            self._dirty_rows += batch.num_rows * (portion is Portion.DIRTY)
            yield batch
        self._dirty_rows = before + rows.count * (portion is Portion.DIRTY)

    def _rows(
        self, reader: SegmentReader, scanned: ScannedSegment, ordinal: int, wanted: pa.Array | None
    ) -> Iterator[ScannedRows]:
        """The records with a wanted key, by the segment's index, or all."""
        if wanted is not None and (found := IndexedKeys(reader, scanned, self._take).rows(wanted, ordinal)):
            yield found
            return
        for group in range(reader.row_groups):
            if reader.records(group) == 0:
                continue
            columns = [name for name in scanned.columns() if name != HEADERS or reader.has_headers(group)]
            self._take(reader.compressed_bytes(group, columns))
            ordinals = np.arange(ordinal, ordinal + reader.records(group))
            yield ScannedRows(reader.read(group, columns), scanned, ordinals)
            ordinal += len(ordinals)

    def _take(self, size_bytes: int) -> None:
        self._acquire(size_bytes)
        self.tally.bytes_read += size_bytes

    def _settle(self, rows: ScannedRows, portion: Portion) -> None:
        tally = self.tally
        if portion in ONLY_ASKED:
            tally.holding_keyed += _count(rows.compared)
            return
        kept = rows.kept_keyless & ~rows.below
        stays = kept & ~rows.past
        tally.below_start += _count(rows.below)
        tally.keyless_kept += _count(stays)
        tally.keyless_expired += _count(kept & rows.past)
        tally.no_key += _count(rows.keyless & ~rows.below & ~kept)
        if portion is Portion.DIRTY:
            tombstones = rows.compared & rows.tombstones
            tally.dirty_keyed += _count(rows.compared)
            tally.dirty_tombstones += _count(tombstones)
            tally.dirty_unordered += rows.unordered(tombstones)
            self.dead.spare(rows.ordinals(stays))
            return
        gone = ~(rows.compared | stays)
        self.dead.add(rows.ordinals(gone))
        tally.clean_tombstones_lost += rows.tombstones_by_step(gone & ~rows.keyless)


def _count(flags: Flags) -> int:
    return int(np.count_nonzero(flags))
