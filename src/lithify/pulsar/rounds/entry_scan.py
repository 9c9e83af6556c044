"""Reads the keys of ranges of entries for the key pass, and settles what needs no comparison.

entries ─► judged ─► keys and ranks of messages that compete ─► comparison
                 └─► the others stay or go at once
                 └─► chunks and sealed batches: with all those of the partition
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from lithify.columnar.keypass.ranks import ORDERED_KEYS, ORDINAL_SHIFT, RANKED_KEYS, Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.pace import unthrottled
from lithify.columnar.segment.dead_records import DeadRecords
from lithify.ports.pulsar.views import EntryRange
from lithify.pulsar.rounds.entry_ranks import BATCHED_BIT, EMPTY_BIT, RANGE_SHIFT, range_starts
from lithify.pulsar.rounds.entry_reader import EntriesRead, EntryReader
from lithify.pulsar.rounds.round_messages import Chunk, RoundMessages, RoundRules, round_messages_of
from lithify.waits.overlap import one_ahead


@dataclass(frozen=True, slots=True)
class NumberedRange:
    """A range of a round's entries. Ordinals of messages are by its number; the ranges of a view are clean."""

    number: int
    entries: EntryRange

    def portion(self, rules: RoundRules) -> Portion:
        """In event-time order all messages are compared in order, including the view's."""
        return Portion.CLEAN if self.entries.compacted and not rules.by_event_time else Portion.DIRTY


def numbered(ranges: Sequence[EntryRange]) -> tuple[NumberedRange, ...]:
    return tuple(NumberedRange(number, entries) for number, entries in enumerate(ranges))


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """A chunk with the ordinal of its row, and whether it is in a clean range."""

    chunk: Chunk
    ordinal: int
    clean: bool


@dataclass(slots=True)
class Unsettled:
    """What a scan met that only all of the partition's entries decide."""

    chunks: list[PlacedChunk] = field(default_factory=list)
    sealed: list[int] = field(default_factory=list)
    """Ordinals of sealed batches."""


class EntryScan:
    """One pass over ranges of entries. A `KeySource`, whose ordinals are by range.

    `acquire`, a throttle, is called with the bytes of entries. What it reads raises `DamagedError` or `BrokerError`.
    """

    def __init__(
        self,
        reader: EntryReader,
        ranges: Sequence[NumberedRange],
        rules: RoundRules,
        acquire: Callable[[int], None] = unthrottled,
    ) -> None:
        self.schema = keys_schema(rules)
        self.starts = range_starts(1 + max((one.number for one in ranges), default=0))
        self.tally = Tally()
        self.dead = DeadRecords(self.starts)
        self.unsettled = Unsettled()
        self.read: dict[int, EntriesRead] = {}
        """By number of the range, what was read of it."""
        self._reader = reader
        self._ranges = ranges
        self._rules = rules
        self._acquire = acquire
        self._read_bytes = 0

    @property
    def dirty_read(self) -> float:
        whole = sum(one.entries.size_bytes for one in self._ranges)
        return min(1.0, self._read_bytes / max(1, whole))

    def has(self, portion: Portion) -> bool:
        return any(one.portion(self._rules) is portion for one in self._ranges)

    def keys(self, portion: Portion, wanted: pa.Array | None = None) -> Iterator[pa.RecordBatch]:
        """Batches of `schema`: the messages of a portion that compete."""
        for one in self._ranges:
            if one.portion(self._rules) is portion:
                yield from self._range(one, clean=portion is Portion.CLEAN)

    def _range(self, one: NumberedRange, *, clean: bool) -> Iterator[pa.RecordBatch]:
        read = self.read[one.number] = EntriesRead()
        part = one.entries
        for entries in one_ahead(self._reader.read(part.start, part.end, compacted=part.compacted)):
            size = sum(len(raw.data) for raw in entries)
            self._acquire(size)
            self._read_bytes += size
            self.tally.bytes_read += size
            read.add(entries)
            for messages in round_messages_of(entries, self._rules):
                first = (one.number << RANGE_SHIFT) + read.rows
                read.rows += messages.count
                self._settle(messages, first, clean=clean)
                yield self._to_compare(messages, first, clean=clean)

    def _settle(self, part: RoundMessages, first: int, *, clean: bool) -> None:
        ordinals = np.arange(first, first + part.count)
        self.unsettled.sealed += ordinals[part.sealed].tolist()
        self.unsettled.chunks += [PlacedChunk(chunk, first + chunk.row, clean) for chunk in part.chunks]
        if not clean:
            self.dead.spare(ordinals[part.stays])
            return
        gone = ~(part.competes | part.stays)
        gone[[chunk.row for chunk in part.chunks]] = False
        self.dead.add(ordinals[gone])

    def _to_compare(self, part: RoundMessages, first: int, *, clean: bool) -> pa.RecordBatch:
        messages, competes = part.messages, part.competes
        ordinals = np.arange(first, first + part.count)[competes]
        ranks = ordinals << ORDINAL_SHIFT | messages.empty[competes] * EMPTY_BIT
        columns = [messages.key.filter(pa.array(competes))]
        if self._rules.by_event_time:
            ranks |= messages.batched[competes] * BATCHED_BIT
            columns += [pa.array(ranks), pa.array(messages.event_time[competes])]
        else:
            columns.append(pa.array(ranks))
        if not clean:
            self.tally.dirty_keyed += len(ordinals)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def keys_schema(rules: RoundRules) -> pa.Schema:
    """The columns to compare: with the event time where that decides."""
    return ORDERED_KEYS if rules.by_event_time else RANKED_KEYS
