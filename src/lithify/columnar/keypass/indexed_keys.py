"""The clean records of a segment that a round has to compare, by the segment's index of keys.

    keys of the dirty winners ─► index ─► positions that may have one ┐
    tombstones that may expire (C18) ─────────────────────────────────┴─► rows of their pages, and no others

This is possible only if a round can decide everything else about the records without reading them. So segments with a
record below the log start, without a key, or past retention are read. So are segments of which so much is wanted that
reading all is faster. Orders by a header are read with all records (C10).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lithify.columnar.keyindex.key_index import KeyIndex
from lithify.columnar.keypass.key_rows import ScannedRows, ScannedSegment
from lithify.columnar.keypass.ranks import Portion
from lithify.columnar.segment.dead_records import Integers
from lithify.columnar.segment.schema import KEY
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.rules.compaction.key_pass_shape import KEYS_PER_CANDIDATE, KEYS_PER_WANTED, only_keys_decide
from lithify.rules.compaction.planner import may_expire


@dataclass(slots=True)
class IndexedKeys:
    """The records of one segment that may have one of `wanted`, or are removed by themselves.

    `took` is called with compressed bytes after they were read. Raises `DamagedError`.
    """

    reader: SegmentReader
    scanned: ScannedSegment
    took: Callable[[int], None]

    def rows(self, wanted: pa.Array, ordinal: int) -> ScannedRows | None:
        """As `ScannedRows` of records whose first one has this ordinal; None if all records are to be read."""
        segment, rules = self.scanned.segment, self.scanned.rules
        if not segment.keys_indexed:  # where the manifest does not say it, the plan has not counted what is read (C30)
            return None
        if self.scanned.portion is not Portion.CLEAN or not only_keys_decide(segment, rules):
            return None
        index = self.reader.key_index()
        if index is None:
            return None
        positions = self._positions(index, wanted)
        self.took(index.bytes_read)
        if positions is None:
            return None
        candidates, deletes = positions
        left, numbers = self.reader.left_of(np.union1d(candidates, deletes))
        records = self.reader.records_at(left)
        table = records.read(self.scanned.columns())
        self.took(records.bytes_read)
        index.check(table.column(KEY).filter(pa.array(np.isin(left, candidates))).combine_chunks())
        return ScannedRows(table, self.scanned, numbers + ordinal)

    def _positions(self, index: KeyIndex, wanted: pa.Array) -> tuple[Integers, Integers] | None:
        """The positions in the file that may have one of the keys, and of tombstones; None if there are many."""
        if len(wanted) * KEYS_PER_WANTED > index.keys:
            return None
        candidates, deletes = index.candidates(wanted), np.zeros(0, np.int64)
        if may_expire(self.scanned.segment, self.scanned.rules):
            nulls, empties = index.deletes()
            either = nulls | empties if self.scanned.rules.empty_is_tombstone else nulls
            deletes = np.frombuffer(either.to_array(), np.uint32).astype(np.int64)
        if (len(candidates) + len(deletes)) * KEYS_PER_CANDIDATE > index.keys:
            return None
        return candidates, deletes
