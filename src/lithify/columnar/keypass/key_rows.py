"""Rows of a segment in the key pass, with what is known of each row without comparing keys.

Columns that cannot matter in a segment are not read:

- value sizes if no record can be a tombstone,
- timestamps if none or all records are past retention,
- offsets if no limit lies inside the segment.

The order by which a record competes is in `orders.py` (C10).

A chunk that may hold back a tombstone counts under the key in its metadata (C53).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.keypass.orders import order_column, order_columns
from lithify.columnar.keypass.ranks import (
    EXPIRED_BIT,
    ORDERED_KEYS,
    ORDINAL_SHIFT,
    PAST_BIT,
    RANKED_KEYS,
    STEP_SHIFT,
    TOMBSTONE_BIT,
    UNORDERED_BIT,
    Flags,
    Portion,
    tombstones_by_step,
)
from lithify.columnar.segment.chunk_keys import chunk_keys
from lithify.columnar.segment.dead_records import Integers
from lithify.columnar.segment.schema import HEADERS, KEY, METADATA, OFFSET, PASSED_THROUGH, TIMESTAMP, VALUE_SIZE
from lithify.model.segment import Segment
from lithify.rules.compaction.survivor_rules import SurvivorRules


@dataclass(frozen=True, slots=True)
class ScannedSegment:
    """A segment, the portion of the log that it belongs to, and the rules that apply."""

    segment: Segment
    portion: Portion
    rules: SurvivorRules
    step_ends: tuple[int, ...]

    def columns(self) -> list[str]:
        """The columns to read."""
        rules, segment = self.rules, self.segment
        columns = [METADATA, PASSED_THROUGH] if self.counts_chunks else []
        if self.portion is not Portion.CHUNKS:
            columns.append(KEY)
        if self.portion is Portion.ABOVE_HORIZON:
            limits = [rules.horizon]
        elif self.portion is Portion.CHUNKS:
            limits = [rules.log_start, rules.horizon]
        else:
            limits = [rules.log_start, rules.horizon]
            if segment.may_hold_tombstones(empty_is_tombstone=rules.empty_is_tombstone):
                columns.append(VALUE_SIZE)
                limits += [rules.tombstones_expire_below, *(self.step_ends if self.is_clean else ())]
        if any(segment.base_offset < limit < segment.end_offset for limit in limits):
            columns.append(OFFSET)
        for column in (*order_columns(rules), *((TIMESTAMP,) if self._is_partly_past else ())):
            if column not in columns and not (column == HEADERS and self.portion is Portion.CHUNKS):
                columns.append(column)
        mixed = 0 < segment.droppable_keyless < segment.null_keys
        if mixed and rules.keep_keyless != rules.keep_passed_through and PASSED_THROUGH not in columns:
            columns.append(PASSED_THROUGH)
        return columns

    @property
    def counts_chunks(self) -> bool:
        """Whether chunks in it count under the keys of their messages."""
        return self.segment.chunks > 0 and self.portion in (Portion.ABOVE_HORIZON, Portion.CHUNKS)

    @property
    def is_clean(self) -> bool:
        return self.portion is Portion.CLEAN

    @property
    def _is_partly_past(self) -> bool:
        """Whether some of its records may be past retention and others not (C24)."""
        limit = self.rules.values_expire_before_ms
        return limit is not None and self.segment.min_timestamp_ms < limit <= self.segment.max_timestamp_ms


class ScannedRows:
    """Rows of a segment with their ordinals, ascending, int64. Arrays have one element per row."""

    def __init__(self, table: pa.Table, scanned: ScannedSegment, ordinals: Integers) -> None:
        self.count = table.num_rows
        self._ordinals = ordinals
        self._table = table
        self._scanned = scanned
        self._offsets = self._numbers(OFFSET)
        self._orders = order_column(self._table, self._scanned.rules)
        rules, null_keys = scanned.rules, scanned.segment.null_keys
        self._keys = self._key_column()
        self.keyless = self._keys.is_null().to_numpy() if null_keys else np.zeros(self.count, np.bool_)
        self.kept_keyless = self._kept_keyless()
        # Of a segment that contains the horizon, only rows at or above it belong to `ABOVE_HORIZON`, no other ones to
        # a table up to there. Rounds do not end within a segment.
        above = scanned.portion is Portion.ABOVE_HORIZON
        self.below = self._below(rules.horizon) if above else self._below(rules.log_start) | ~self._below(rules.horizon)
        self.past = self._past(rules.values_expire_before_ms)
        self.compared = ~(self.below | self.keyless)
        if scanned.portion is Portion.CHUNKS:
            self.compared &= ~self.past  # those that go in this round hold nothing
        self.tombstones = np.zeros(self.count, np.bool_)
        self.ranks = ordinals << ORDINAL_SHIFT
        if VALUE_SIZE in table.column_names:
            self.tombstones = _tombstones(table.column(VALUE_SIZE), rules)
            self._rank_tombstones()
        if rules.values_expire_before_ms is not None:
            self.ranks |= (self.past & ~self.tombstones) * PAST_BIT

    @property
    def held_bytes(self) -> int:
        return int(self._keys.nbytes)

    def ordinals(self, wanted: Flags) -> Integers:
        return self._ordinals[wanted]

    def unordered(self, wanted: Flags) -> int:
        """How many of the wanted rows are tombstones without an order (C11)."""
        return 0 if self._orders is None else int(np.count_nonzero(self.ranks[wanted] & UNORDERED_BIT))

    def to_compare(self) -> Iterator[pa.RecordBatch]:
        """The rows to compare, as `RANKED_KEYS`, or `ORDERED_KEYS` if orders decide."""
        columns = [self._keys, pa.array(self.ranks)]
        if self._orders is None:
            table = pa.Table.from_arrays(columns, schema=RANKED_KEYS)
        else:
            table = pa.Table.from_arrays([*columns, self._orders], schema=ORDERED_KEYS)
        if not self.compared.all():
            table = table.filter(pa.array(self.compared))
        yield from table.to_batches()

    def tombstones_by_step(self, wanted: Flags) -> Integers:
        return tombstones_by_step(self.ranks[wanted])

    def _kept_keyless(self) -> Flags:
        """Keyless rows that only retention may drop (C16, C53)."""
        rules, segment = self._scanned.rules, self._scanned.segment
        if not segment.null_keys:
            return self.keyless
        if rules.keep_keyless == rules.keep_passed_through or segment.droppable_keyless == segment.null_keys:
            return self.keyless & rules.keep_keyless
        if PASSED_THROUGH in self._table.column_names:
            passed = self._table.column(PASSED_THROUGH).is_valid().to_numpy()
        else:  # all keyless ones are
            passed = self.keyless
        return np.where(passed, self.keyless & rules.keep_passed_through, self.keyless & rules.keep_keyless)

    def _rank_tombstones(self) -> None:
        """Notes in their ranks what decides about tombstones."""
        scanned, rows = self._scanned, np.flatnonzero(self.tombstones)
        bits = self._below(scanned.rules.tombstones_expire_below)[rows] * EXPIRED_BIT | TOMBSTONE_BIT
        if self._orders is not None and self._orders.null_count:
            bits |= self._orders.take(pa.array(rows)).is_null().to_numpy(zero_copy_only=False) * UNORDERED_BIT
        if scanned.is_clean:
            bits |= self._steps(scanned.step_ends)[rows] << STEP_SHIFT
        self.ranks[rows] |= bits

    def _key_column(self) -> pa.ChunkedArray:
        """The keys, including the keys of chunks if they count."""
        if not self._scanned.counts_chunks:
            return self._table.column(KEY)
        of_chunks = chunk_keys(self._table)
        return pc.coalesce(self._table.column(KEY), of_chunks) if KEY in self._table.column_names else of_chunks

    def _numbers(self, column: str) -> Integers | None:
        return self._table.column(column).to_numpy() if column in self._table.column_names else None

    def _below(self, limit: int) -> Flags:
        if self._offsets is None:  # no limit lies inside the segment
            return np.full(self.count, self._scanned.segment.end_offset <= limit)
        return np.asarray(self._offsets < limit, np.bool_)

    def _past(self, limit_ms: int | None) -> Flags:
        if limit_ms is None:
            return np.zeros(self.count, np.bool_)
        timestamps = self._numbers(TIMESTAMP)
        if timestamps is None:  # either all or none are
            return np.full(self.count, self._scanned.segment.max_timestamp_ms < limit_ms)
        return np.asarray(timestamps < limit_ms, np.bool_)

    def _steps(self, ends: tuple[int, ...]) -> Integers:
        segment = self._scanned.segment
        offsets = self._offsets if self._offsets is not None else np.full(self.count, segment.base_offset)
        return np.searchsorted(np.array(ends, np.int64), offsets, side="right")


def _tombstones(sizes: pa.ChunkedArray, rules: SurvivorRules) -> Flags:
    """For each record whether it is a tombstone (C17): bool, as long as `sizes`."""
    null = sizes.is_null()
    flags = pc.or_(null, pc.equal(sizes.fill_null(-1), 0)) if rules.empty_is_tombstone else null
    return np.asarray(flags.to_numpy(), np.bool_)
