"""Copies records of segments, in order, to new segments: a round's survivors, what a cut leaves, a union.

Or leaves a segment where it is, and writes a mask of its dead records.

    sources   [ a: row groups 0 1 2 ][ b: row groups 0 1 ]
    dead           2, 5 to 9              none
    result    [          a and b without the dead         ]      (more than one above `segment.bytes`)

Records are copied as Arrow columns. While one row group of the result is written, one or two threads read survivors of
the next row groups. Only a part of these and a piece of each source are in memory (C38). Row groups without survivors
are not read. `repair` merges overlapping segments with each offset once:

    [0 ─────── 4]          offsets are permanent and records never change (C1),
       [2 ────────── 9]    so all segments have the same record at an offset
    [0 ───────────── 9]
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from lithify.columnar.files.access import FileAccess
from lithify.columnar.pace import unthrottled
from lithify.columnar.segment.dead_records import DeadPositions, Flags, bitmap_of
from lithify.columnar.segment.mask_file import masked_with, read_mask, write_mask
from lithify.columnar.segment.schema import HEADERS, OFFSET
from lithify.columnar.segment.segment_reader import SegmentReader, read_segment
from lithify.columnar.segment.writer import SegmentSpec, SegmentWriter
from lithify.errors import DamagedError, EngineError
from lithify.model.segment import Segment
from lithify.waits.overlap import several_ahead

PIECE_BYTES = 2 * 2**20
"""Read at a time of a row group: what is filtered is still in the processor's cache, and little memory is needed."""
PART_BYTES = 16 * 2**20
"""Of survivors that a thread has read before their turn comes, and reads while they are written."""
LARGE_SOURCE_BYTES = 4 * 2**20
"""Mean size from which sources are read on two threads."""


@dataclass(frozen=True, slots=True)
class Source:
    """A segment to copy without its dead records; `survivors` is the number of records left."""

    segment: Segment
    survivors: int
    dead: DeadPositions


@dataclass(frozen=True, slots=True)
class Throttles:
    """Called with compressed bytes: `read` before they are read, `write` after they were written."""

    read: Callable[[int], None] = unthrottled
    write: Callable[[int], None] = unthrottled


def rewrite(
    access: FileAccess,
    spec: SegmentSpec,
    sources: Sequence[Source],
    *,
    attempt: str,
    throttles: Throttles = Throttles(),
) -> tuple[tuple[Segment, ...], int]:
    """Returns the new segments in offset order, and the compressed bytes read.

    `attempt` is as in `SegmentWriter`. Raises `DamagedError`, which names the source, and what the writer raises.
    """
    bytes_read: list[int] = []

    def acquire(size_bytes: int) -> None:
        bytes_read.append(size_bytes)
        throttles.read(size_bytes)

    with SegmentWriter(access, spec, attempt=attempt, acquire=throttles.write) as writer:
        threads, found = _threads(sources), dict[str, list[int]]()
        for table in several_ahead(partial(_survivors, access, sources, acquire, found, threads), threads):
            writer.write(table)
            del table  # else it stays in memory until the next is there
        return writer.close(), sum(bytes_read)


def _threads(sources: Sequence[Source]) -> int:
    """How many read: two where that takes longer than to write the survivors, which are few then and take no room.

    Each opens all files. So one reads small ones, most of whose bytes are read to open them.
    """
    survivors, records = sum(s.survivors for s in sources), sum(s.segment.records for s in sources)
    size_bytes = sum(s.segment.size_bytes for s in sources)
    return 2 if survivors * 2 <= records and size_bytes >= len(sources) * LARGE_SOURCE_BYTES else 1


def cut(access: FileAccess, spec: SegmentSpec, segment: Segment, end_offset: int) -> tuple[Segment, ...]:
    """Copies the records of `segment` below `end_offset`, one row group at a time (C26).

    Returns no segment if there are no such records. One run may cut a segment of the log and one of its view
    with the same base offset, so file names contain a hash of what identifies the source. Raises `DamagedError`,
    which names the segment.
    """
    origin = hashlib.blake2b(f"{segment.id} {end_offset}".encode(), digest_size=6).hexdigest()
    with SegmentWriter(access, spec, attempt=origin) as writer, SegmentReader(access, segment) as reader:
        for group in range(reader.row_groups):
            table = reader.read(group, _columns_with_data(reader, group))
            writer.write(_all_columns(table.filter(pc.field(OFFSET) < end_offset), reader.schema))
            if table.num_rows and table.column(OFFSET)[-1].as_py() >= end_offset - 1:
                break  # the offsets read decide, not the footer's statistics
        return writer.close()


def mask(
    access: FileAccess, spec: SegmentSpec, source: Source, *, attempt: str, throttles: Throttles = Throttles()
) -> tuple[Segment, int]:
    """Hides the dead records of a segment, with those that its mask hid before; its own file is not opened.

    Returns the segment with its new mask, and the compressed bytes read. Raises `DamagedError`, which names the mask
    before, `EngineError` if others are dead than were counted, `OSError` or `WarehouseError`.
    """
    segment = source.segment
    throttles.read(segment.mask_bytes)
    masked = masked_with(read_mask(access, segment), source.dead, segment.records_in_file)
    left = segment.records_in_file - len(masked)
    if left != source.survivors:
        raise EngineError(
            f"{segment.path}: {source.survivors} records should survive, but its mask would leave {left}",
            hint="nothing was committed; the log is unchanged",
        )
    new = write_mask(access, spec, segment, masked, attempt=attempt, acquire=throttles.write)
    return replace(segment, records=left, mask=new), segment.mask_bytes


def mask_offsets(access: FileAccess, spec: SegmentSpec, segment: Segment, offsets: Collection[int]) -> Segment:
    """Hides the records of a segment at these offsets, with those that its mask hid before. Raises as `mask` does."""
    dead, left_before = BitMap(), 0
    wanted = np.fromiter(offsets, np.int64, len(offsets))
    for table in read_segment(access, segment, columns=[OFFSET]):
        dead |= bitmap_of(np.flatnonzero(np.isin(table.column(OFFSET).to_numpy(), wanted)) + left_before)
        left_before += table.num_rows
    named = hashlib.blake2b(segment.id.encode() + dead.serialize(), digest_size=6).hexdigest()
    source = Source(segment, left_before - len(dead), DeadPositions(dead))
    return mask(access, spec, source, attempt=named)[0]


def _survivors(
    access: FileAccess,
    sources: Sequence[Source],
    acquire: Callable[[int], None],
    found: dict[str, list[int]],
    threads: int,
    thread: int,
) -> Iterator[tuple[pa.Table, bool]]:
    """The survivors of every `threads`-th of the row groups that have any, from number `thread` on.

    Each table is a part of the survivors of a row group, with whether it is the last.

    Each thread opens the files itself, as Arrow's readers are not safe for several. `found` is shared: the records of
    the row groups of each file, which must be the same for all of them.
    """
    number = 0
    for source in sources:
        survivors = 0
        if thread == 0 and source.segment.mask_bytes:
            acquire(source.segment.mask_bytes)
        with SegmentReader(access, source.segment) as reader:
            in_groups = [reader.records(group) for group in range(reader.row_groups)]
            if found.setdefault(source.segment.path, in_groups) != in_groups:
                raise DamagedError(f"{source.segment.path}: it was replaced while it was read", hint=_CHANGED)
            for group, live in _live(in_groups, source.dead):
                left = int(live.sum())
                survivors += left
                if left == 0:
                    continue
                if number % threads == thread:
                    columns = _columns_with_data(reader, group)
                    acquire(reader.compressed_bytes(group, columns))
                    yield from _read(reader, group, columns, live)
                number += 1
        if survivors != source.survivors:
            raise DamagedError(
                f"{source.segment.path}: {source.survivors} records should survive, but its row groups hold "
                f"{survivors}",
                hint=_CHANGED,
            )


_CHANGED = "run `lithify verify`: the file was changed during the round; nothing was committed"


def _live(in_groups: Sequence[int], dead: DeadPositions) -> Iterator[tuple[int, Flags]]:
    """Each row group, by the number of its records, and which of them survive."""
    for group, (start, end) in enumerate(pairwise(accumulate(in_groups, initial=0))):
        yield group, ~dead.flags(start, end)


def _read(reader: SegmentReader, group: int, columns: Sequence[str], live: Flags) -> Iterator[tuple[pa.Table, bool]]:
    """The records of a row group that survive, about `PART_BYTES` at a time, and whether these are the last.

    The others take memory for a piece of the row group at a time.
    """
    position, tables, size_bytes = 0, [], 0
    for piece in reader.pieces(group, columns, PIECE_BYTES):
        survives = live[position : position + piece.num_rows]
        tables.append(piece if survives.all() else piece.filter(pa.array(survives)))
        position += piece.num_rows
        size_bytes += tables[-1].nbytes
        if size_bytes >= PART_BYTES and live[position:].any():
            yield _all_columns(pa.concat_tables(tables), reader.schema), False
            tables, size_bytes = [], 0
    yield _all_columns(pa.concat_tables(tables), reader.schema), True


def _columns_with_data(reader: SegmentReader, group: int) -> list[str]:
    """All columns, without `headers` if no record has any, since decoding lists is slow."""
    return [name for name in reader.schema.names if name != HEADERS or reader.has_headers(group)]


def _all_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if HEADERS not in table.column_names:
        headers = schema.field(HEADERS)
        table = table.append_column(headers, pa.nulls(table.num_rows, headers.type))
    return table.select(schema.names)


def unite(access: FileAccess, spec: SegmentSpec, segments: Sequence[Segment]) -> tuple[Segment, ...]:
    """New segments with all records of `segments`, reading one row group of each at a time.

    Raises `DamagedError`, even if two segments only have different records at one offset: only one was committed.
    """
    with SegmentWriter(access, spec, attempt="united") as writer:
        for table in _merged([read_segment(access, segment) for segment in segments]):
            writer.write(_each_once(table, segments))
        return writer.close()


def _merged(sources: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """Tables of all records sorted by offset; each ends at the lowest last offset of the row groups in memory."""
    waiting = [(table, source) for source in sources if (table := next(source, None)) is not None]
    while waiting:
        end = min(table.column(OFFSET)[-1].as_py() for table, _ in waiting)
        parts = [table.filter(pc.field(OFFSET) <= end) for table, _ in waiting]
        yield pa.concat_tables(part.cast(parts[0].schema) for part in parts).sort_by(OFFSET)
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
            f"partition {segments[0].partition} has different records at offset {offset} in {files}",
            hint="move the file that was not committed to another place, and repair again",
        )
    first = np.ones(len(offsets), bool)
    first[again] = False
    return table.filter(pa.array(first))
