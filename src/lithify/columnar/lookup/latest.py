"""The latest record of one key of a log, without a pass over the other keys (C9 to C13, C17).

    segments whose bounds have the key     newest first
    places of the key in a segment         by its index of keys, or by its keys, row group by row group from the last on
    the winner                             by offsets and orders at these places; then all columns of one record

Without an order the first record that is found wins (C9), and nothing older is read; with one (C10) an older record may
win. It takes the memory of one row group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.files.access import FileAccess, local_path
from lithify.columnar.keyindex.key_index import KeyIndex
from lithify.columnar.keypass.orders import order_column, order_columns
from lithify.columnar.lookup.ruled_out import is_ruled_out
from lithify.columnar.segment.checked_file import damage_named
from lithify.columnar.segment.dead_records import Integers
from lithify.columnar.segment.schema import KEY, OFFSET, VALUE_SIZE
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.model.record import is_tombstone
from lithify.model.segment import Segment
from lithify.rules.compaction.key_bounds import KeyBounds
from lithify.rules.compaction.survivor_rules import NO_ORDER, SurvivorRules
from lithify.waits.parallel import parallel

REQUESTS_AT_ONCE = 16
"""In an object store, where asking an index is waiting; on a disk it is work, and newer segments may end it."""
CANDIDATES_AT_ONCE = 1024
"""Of those that an index names: a producer may have written one key millions of times."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A record of the key in a segment, by its position in the file."""

    order: int
    offset: int
    position: int
    value_size: int | None

    def loses_to(self, other: _Found) -> bool:
        return (self.order, self.offset) < (other.order, other.offset)  # C9, C10


def latest_of_key(access: FileAccess, segments: Sequence[Segment], rules: SurvivorRules, key: bytes) -> pa.Table | None:
    """The record of `key` that survives `rules` in one log: all columns, one row; None if there is none.

    `rules` are such as `table_rules`, by which every tombstone has expired. Raises `DamagedError`.
    """
    best: _Found | None = None
    record: pa.Table | None = None
    newest_first = sorted(segments, key=lambda segment: segment.end_offset, reverse=True)
    asked = [segment for segment in newest_first if _may_have(segment, rules, key)]
    at_once = 1 if all(local_path(segment.path) for segment in asked) else REQUESTS_AT_ONCE
    ruled_out = parallel(lambda one: one.keys_indexed and is_ruled_out(access, one, key), asked, at_once)
    for segment, is_out in zip(asked, ruled_out, strict=True):
        if best is not None and not rules.is_ordered and segment.end_offset <= best.offset:
            break
        if is_out:
            continue
        with SegmentReader(access, segment) as reader:
            found = _best_in(reader, rules, pa.scalar(key, pa.binary()))
            if found is None or (best is not None and found.loses_to(best)):
                continue
            best = found
            deletes = is_tombstone(found.value_size, empty_is_tombstone=rules.empty_is_tombstone)
            record = None if deletes else _record_at(reader, segment, found.position)
    return record


def _may_have(segment: Segment, rules: SurvivorRules, key: bytes) -> bool:
    """Whether a record of the key that counts may be in a segment, as far as metadata can tell."""
    in_range = segment.base_offset < rules.horizon and segment.end_offset > rules.log_start
    return in_range and KeyBounds((key,), (key,)).may_meet(segment)


def _best_in(reader: SegmentReader, rules: SurvivorRules, key: pa.Scalar) -> _Found | None:
    """The winner of the key in a segment, within the limits of the log."""
    best: _Found | None = None
    for positions in _places(reader, key):
        found = _best_of(reader, positions, rules)
        if found is not None and (best is None or best.loses_to(found)):
            best = found
        if best is not None and not rules.is_ordered:
            break
    return best


def _places(reader: SegmentReader, key: pa.Scalar) -> Iterator[Integers]:
    """The positions in the file of the records of the key that are not masked, ascending, from the newest part on."""
    index = reader.key_index()
    parts = _by_keys(reader, key) if index is None else _by_index(reader, index, key)
    return (part for part in parts if len(part))


def _by_keys(reader: SegmentReader, key: pa.Scalar) -> Iterator[Integers]:
    for group in reversed(range(reader.row_groups)):
        if reader.records(group):
            rows = _rows_of(reader.read(group, [KEY]), key)
            yield reader.positions(group)[rows] if len(rows) else rows


def _by_index(reader: SegmentReader, index: KeyIndex, key: pa.Scalar) -> Iterator[Integers]:
    candidates, _ = reader.left_of(index.candidates(pa.array([key.as_py()], pa.binary())))
    for end in range(len(candidates), 0, -CANDIDATES_AT_ONCE):
        some = candidates[max(0, end - CANDIDATES_AT_ONCE) : end]
        there = reader.records_at(some).read([KEY])
        index.check(there.column(KEY).combine_chunks())
        yield some[_rows_of(there, key)]


def _rows_of(table: pa.Table, key: pa.Scalar) -> Integers:
    """The rows with exactly this key (C12)."""
    same = pc.fill_null(pc.equal(table.column(KEY), key), False)
    return np.flatnonzero(same.to_numpy())


def _best_of(reader: SegmentReader, positions: Integers, rules: SurvivorRules) -> _Found | None:
    """The winner of records of one key, within the limits of the log."""
    facts = reader.records_at(positions).read([OFFSET, VALUE_SIZE, *order_columns(rules)])
    offsets = facts.column(OFFSET).to_numpy()
    counting = np.flatnonzero((offsets >= rules.log_start) & (offsets < rules.horizon))
    if not len(counting):
        return None
    orders = _orders(facts, rules)
    last = counting[-1] if orders is None else max(counting, key=lambda row: (orders[row], row))
    order = 0 if orders is None else orders[last]
    return _Found(order, int(offsets[last]), int(positions[last]), facts.column(VALUE_SIZE)[last].as_py())


def _orders(facts: pa.Table, rules: SurvivorRules) -> list[int] | None:
    """The order of each record, None if the offset alone decides (C10)."""
    column = order_column(facts, rules)
    return None if column is None else [NO_ORDER if order is None else order for order in column.to_pylist()]


def _record_at(reader: SegmentReader, segment: Segment, position: int) -> pa.Table:
    record = reader.records_at(np.array([position])).read(reader.schema.names)
    with damage_named(segment.path):
        record.validate(full=True)  # checks that names of headers are valid UTF-8
    return record
