"""Reads the keys of segments for the key pass, and settles every record that needs no comparing.

    Parquet: key, offset, value size ──► settled here: below the log start (C26), keyless (C16)
                                     └─► (key, rank) of all others, to be compared by key

A rank is one number that sorts like the offset and carries what decides about a winner:

    rank = ordinal << 10 | step << 2 | expired << 1 | tombstone

The ordinal numbers the records of a scan through (see `marks`); the step is the one that covers a
clean tombstone. Values are never read (C38), value sizes and offsets only where the facts of a
segment leave a question open: whether a record is a tombstone, and on which side of a limit its
offset lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.access import FileAccess
from lithify.columnar.marks import Integers, MarkSet, ordinal_starts
from lithify.columnar.schema import KEY, OFFSET, VALUE_SIZE
from lithify.columnar.segment_file import SegmentReader
from lithify.columnar.throttle import unthrottled
from lithify.compaction.rules import SurvivorRules
from lithify.model.segment import Segment

RANK = "rank"
RANKED_KEYS = pa.schema([pa.field(KEY, pa.binary()), pa.field(RANK, pa.int64())])
TOMBSTONE_BIT = 1
EXPIRED_BIT = 2
STEP_SHIFT = 2
STEP_MASK = 0xFF
ORDINAL_SHIFT = 10

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LogScan:
    """The part of one log that a key pass reads.

    `clean` are the segments below the first dirty offset that are looked at, `dirty` all from there
    to the horizon, each in offset order. `step_ends` are the ends of the log's tombstone steps.
    """

    rules: SurvivorRules
    clean: tuple[Segment, ...]
    dirty: tuple[Segment, ...]
    step_ends: tuple[int, ...] = ()
    first_ordinal: int = 0

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All of them in offset order: the numbering that marks and ordinals follow."""
        return self.clean + self.dirty

    def only(self, index: int, first_ordinal: int) -> LogScan:
        """The scan of one of the segments, whose first record has this ordinal."""
        clean, dirty = self.clean[index : index + 1], self.dirty[max(0, index - len(self.clean)) :][:1]
        return replace(self, clean=clean, dirty=() if clean else dirty, first_ordinal=first_ordinal)


@dataclass(slots=True)
class Tally:
    """What a pass counted, in records unless it says otherwise. Tallies of parts add up."""

    below_start: int = 0
    no_key: int = 0
    keyless_kept: int = 0
    dirty_keyed: int = 0
    """Records of the dirty part that have to be compared: what all hash ranges together must get."""
    dirty_tombstones: int = 0
    compared: int = 0
    """Records of the dirty part that were compared."""
    winners: int = 0
    winning_tombstones: int = 0
    expired_winners: int = 0
    clean_superseded: int = 0
    clean_expired: int = 0
    clean_tombstones_lost: Integers = field(default_factory=lambda: np.zeros(STEP_MASK + 1, np.int64))
    """By tombstone step."""
    bytes_read: int = 0

    def add(self, other: Tally) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class KeyScan:
    """One pass over the keys of a log, by one hash range.

    With `settles` it counts and marks what needs no comparing; of the ranges of a log exactly one
    does. `acquire` is called with compressed bytes before they are read, where a throttle waits.
    """

    def __init__(
        self, access: FileAccess, log: LogScan, *, settles: bool, acquire: Callable[[int], None] = unthrottled
    ) -> None:
        self.starts = ordinal_starts(log.segments, log.first_ordinal)
        self.tally = Tally()
        self.marks = MarkSet(self.starts)
        self._access = access
        self._log = log
        self._settles = settles
        self._acquire = acquire

    @property
    def has_clean(self) -> bool:
        return bool(self._log.clean)

    def clean(self) -> Iterator[pa.RecordBatch]:
        """(key, rank) of the clean records that have to be compared, as `RANKED_KEYS`."""
        for index, segment in enumerate(self._log.clean):
            yield from self._segment(segment, int(self.starts[index]), is_clean=True)

    def dirty(self) -> Iterator[pa.RecordBatch]:
        """The same of the dirty ones."""
        for index, segment in enumerate(self._log.dirty, len(self._log.clean)):
            yield from self._segment(segment, int(self.starts[index]), is_clean=False)

    def _segment(self, segment: Segment, ordinal: int, *, is_clean: bool) -> Iterator[pa.RecordBatch]:
        columns = self._columns(segment, is_clean=is_clean)
        with SegmentReader(self._access, segment) as reader:
            for group in range(reader.row_groups):
                size = reader.compressed_bytes(group, columns)
                self._acquire(size)
                rows = _Rows(reader.read(group, columns), segment, self._log, ordinal, is_clean=is_clean)
                self.tally.bytes_read += size
                if self._settles:
                    self._settle(rows)
                yield from rows.to_compare()
                ordinal += rows.count

    def _columns(self, segment: Segment, *, is_clean: bool) -> list[str]:
        rules = self._log.rules
        columns = [KEY]
        limits = [rules.log_start]
        if segment.may_hold_tombstones(empty_is_tombstone=rules.empty_is_tombstone):
            columns.append(VALUE_SIZE)
            limits += [rules.tombstones_expire_below, *(self._log.step_ends if is_clean else ())]
        if any(segment.base_offset < limit < segment.end_offset for limit in limits):
            columns.append(OFFSET)
        return columns

    def _settle(self, rows: _Rows) -> None:
        tally, keep_keyless = self.tally, self._log.rules.keep_keyless
        keyless = rows.keyless & ~rows.below_start
        tally.below_start += int(rows.below_start.sum())
        if keep_keyless:
            tally.keyless_kept += int(keyless.sum())
        else:
            tally.no_key += int(keyless.sum())
        if not rows.is_clean:
            tally.dirty_keyed += int(rows.compared.sum())
            tally.dirty_tombstones += int((rows.compared & rows.tombstones).sum())
            if keep_keyless:
                self.marks.add(rows.ordinals[keyless])
            return
        gone = rows.below_start if keep_keyless else ~rows.compared
        self.marks.add(rows.ordinals[gone])
        tally.clean_tombstones_lost += rows.tombstones_by_step(gone & ~rows.keyless)


class _Rows:
    """The rows of one row group and what is known of each."""

    def __init__(self, table: pa.Table, segment: Segment, log: LogScan, ordinal: int, *, is_clean: bool) -> None:
        self.count = table.num_rows
        self.is_clean = is_clean
        self.ordinals = np.arange(ordinal, ordinal + self.count)
        self._keys = table.column(KEY)
        self._offsets = table.column(OFFSET).to_numpy() if OFFSET in table.column_names else None
        self._segment = segment
        self.below_start = self._below(log.rules.log_start)
        self.keyless = self._keys.is_null().to_numpy() if segment.null_keys else np.zeros(self.count, np.bool_)
        self.compared = ~(self.below_start | self.keyless)
        if VALUE_SIZE in table.column_names:
            self.tombstones = _tombstones(table.column(VALUE_SIZE), log.rules)
            flags = self.tombstones * TOMBSTONE_BIT
            flags |= (self.tombstones & self._below(log.rules.tombstones_expire_below)) * EXPIRED_BIT
            if is_clean:
                flags |= (self.tombstones * self._steps(log.step_ends)) << STEP_SHIFT
            self.ranks = self.ordinals << ORDINAL_SHIFT | flags
        else:
            self.tombstones = np.zeros(self.count, np.bool_)
            self.ranks = self.ordinals << ORDINAL_SHIFT

    def to_compare(self) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_arrays([self._keys, pa.array(self.ranks)], schema=RANKED_KEYS)
        if not self.compared.all():
            table = table.filter(pa.array(self.compared))
        yield from table.to_batches()

    def tombstones_by_step(self, wanted: Flags) -> Integers:
        return tombstones_by_step(self.ranks[wanted])

    def _below(self, limit: int) -> Flags:
        if self._offsets is None:  # then no limit lies inside the segment
            return np.full(self.count, self._segment.end_offset <= limit)
        return np.asarray(self._offsets < limit, np.bool_)

    def _steps(self, ends: tuple[int, ...]) -> Integers:
        offsets = self._offsets if self._offsets is not None else np.full(self.count, self._segment.base_offset)
        return np.searchsorted(np.array(ends, np.int64), offsets, side="right")


def tombstones_by_step(ranks: Integers) -> Integers:
    """Of records with these ranks: how many are tombstones, by the step that covers them."""
    steps = (ranks[ranks & TOMBSTONE_BIT == TOMBSTONE_BIT] >> STEP_SHIFT) & STEP_MASK
    return np.bincount(steps, minlength=STEP_MASK + 1).astype(np.int64)


def _tombstones(sizes: pa.ChunkedArray, rules: SurvivorRules) -> Flags:
    """Which records delete their key (C17)."""
    null = sizes.is_null()
    flags = pc.or_(null, pc.equal(sizes.fill_null(-1), 0)) if rules.empty_is_tombstone else null
    return np.asarray(flags.to_numpy(), np.bool_)
