"""The latest record of one key of a log, without a pass over the other keys (C9 to C13, C17).

    segments whose bounds have the key     newest first
    row groups                             newest first: keys, and of those that are the key offsets and orders
    the winner                             all columns of one row, unless it deletes

Without an order the first record that is found wins (C9), and nothing older is read; with one (C10) an older record may
win. Memory is that of a row group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.files.access import FileAccess
from lithify.columnar.keypass.orders import order_column, order_columns
from lithify.columnar.segment.schema import KEY, OFFSET, VALUE_SIZE
from lithify.columnar.segment.segment_reader import SegmentReader
from lithify.model.record import is_tombstone
from lithify.model.segment import Segment
from lithify.rules.compaction.key_bounds import KeyBounds
from lithify.rules.compaction.survivor_rules import NO_ORDER, SurvivorRules


@dataclass(frozen=True, slots=True)
class _Found:
    """A record of the key in a row group."""

    order: int
    offset: int
    row: int
    value_size: int | None

    def loses_to(self, other: _Found) -> bool:
        return (self.order, self.offset) < (other.order, other.offset)  # C9, C10


def latest_of_key(access: FileAccess, segments: Sequence[Segment], rules: SurvivorRules, key: bytes) -> pa.Table | None:
    """The record of `key` that survives `rules` in one log: all columns, one row; None if there is none.

    `rules` are such as `table_rules`, by which every tombstone has expired. Raises `DamagedError`.
    """
    best: _Found | None = None
    record: pa.Table | None = None
    for segment in sorted(segments, key=lambda segment: segment.end_offset, reverse=True):
        if best is not None and not rules.is_ordered and segment.end_offset <= best.offset:
            break
        if not _may_have(segment, rules, key):
            continue
        with SegmentReader(access, segment) as reader:
            for group in reversed(range(reader.row_groups)):
                found = _best_of(reader, group, rules, key)
                if found is None or (best is not None and found.loses_to(best)):
                    continue
                best = found
                deletes = is_tombstone(found.value_size, empty_is_tombstone=rules.empty_is_tombstone)
                record = None if deletes else reader.read(group, reader.schema.names).slice(found.row, 1)
                if not rules.is_ordered:
                    break
    return record


def _may_have(segment: Segment, rules: SurvivorRules, key: bytes) -> bool:
    """Whether a record of the key that counts may be in a segment, as far as metadata can tell."""
    in_range = segment.base_offset < rules.horizon and segment.end_offset > rules.log_start
    return in_range and KeyBounds((key,), (key,)).may_meet(segment)


def _best_of(reader: SegmentReader, group: int, rules: SurvivorRules, key: bytes) -> _Found | None:
    """The winner of the key among what is left of a row group, within the limits of the log."""
    if reader.records(group) == 0:
        return None
    keys = reader.read(group, [KEY]).column(KEY)
    rows = np.flatnonzero(pc.fill_null(pc.equal(keys, pa.scalar(key, pa.binary())), False).to_numpy())
    if not len(rows):
        return None
    facts = reader.read(group, [OFFSET, VALUE_SIZE, *order_columns(rules)]).take(pa.array(rows))
    offsets = facts.column(OFFSET).to_numpy()
    counting = np.flatnonzero((offsets >= rules.log_start) & (offsets < rules.horizon))
    if not len(counting):
        return None
    orders = _orders(facts, rules)
    last = counting[-1] if orders is None else max(counting, key=lambda row: (orders[row], row))
    order = 0 if orders is None else orders[last]
    return _Found(order, int(offsets[last]), int(rows[last]), facts.column(VALUE_SIZE)[last].as_py())


def _orders(facts: pa.Table, rules: SurvivorRules) -> list[int] | None:
    """The order of each record, None where the offset alone decides (C10)."""
    column = order_column(facts, rules)
    return None if column is None else [NO_ORDER if order is None else order for order in column.to_pylist()]
