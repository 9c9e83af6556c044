"""Merges overlapping segments into new ones with each offset once, for `repair`.

[0 ─────── 4]          offsets are permanent and records never change (C1),
   [2 ────────── 9]    so all segments have the same record at an offset
[0 ───────────── 9]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.files.access import FileAccess
from lithify.columnar.segment.reader import read_segment
from lithify.columnar.segment.schema import OFFSET, SEGMENT_SCHEMA
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.errors import DamagedError
from lithify.model.segment import Segment


def unite(access: FileAccess, spec: SegmentSpec, segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """New segments with all records of `segments`, reading one row group of each at a time.

    Raises `DamagedError`, also if two segments have different records at one offset: only one was committed.
    """
    writer = SegmentWriter(access, spec, attempt="united")
    try:
        for table in _merged([read_segment(access, segment) for segment in segments]):
            writer.write(_each_once(table, segments))
        return writer.close()
    except BaseException:
        writer.abandon()
        raise


def _merged(sources: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """Tables of all records sorted by offset; each ends at the lowest last offset of the row groups in memory."""
    waiting = [(table, source) for source in sources if (table := next(source, None)) is not None]
    while waiting:
        end = min(table.column(OFFSET)[-1].as_py() for table, _ in waiting)
        parts = [table.filter(pc.field(OFFSET) <= end) for table, _ in waiting]
        yield pa.concat_tables(part.cast(SEGMENT_SCHEMA) for part in parts).sort_by(OFFSET)
        rest = [(table.filter(pc.field(OFFSET) > end), source) for table, source in waiting]
        waiting = [
            (table, source)
            for left, source in rest
            if (table := left if left.num_rows else next(source, None)) is not None
        ]


def _each_once(table: pa.Table, segments: Sequence[Segment]) -> pa.Table:
    offsets = table.column(OFFSET).to_numpy()
    again = np.flatnonzero(offsets[1:] == offsets[:-1]) + 1
    if len(again) == 0:
        return table
    here, before = table.take(again), table.take(again - 1)
    if not here.equals(before):
        differs = next(n for n in range(len(again)) if not here.slice(n, 1).equals(before.slice(n, 1)))
        offset = int(offsets[again[differs]])
        files = ", ".join(s.path for s in segments if s.base_offset <= offset < s.end_offset)
        raise DamagedError(
            f"partition {segments[0].partition} has different records of offset {offset} in {files}",
            hint="only one of them was committed: move the other file away, and repair again",
        )
    first = np.ones(len(offsets), bool)
    first[again] = False
    return table.filter(pa.array(first))
