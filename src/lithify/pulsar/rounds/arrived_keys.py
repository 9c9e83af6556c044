"""Finds the messages that remain in one hash range of a partition's keys, from what scans of its entries sent.

keys        spooled, compared in bounded memory (`WinnerFinder`)
sealed      an empty payload after a sealed batch stays: it may delete a key that the batch hides
chunks      a chunked message competes where it is complete; its chunks stay or go together
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from lithify.columnar.key_hash import HashRange
from lithify.columnar.keypass.key_blocks import Spool
from lithify.columnar.keypass.key_source import KeySource
from lithify.columnar.keypass.ranks import ORDINAL_SHIFT, RANK, Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.keypass.winners import WinnerFinder
from lithify.columnar.segment.dead_records import DeadPositions, DeadRecords
from lithify.pulsar.compaction.chunks import ChunkId, assembled
from lithify.pulsar.rounds.entry_ranks import DROPPED_BIT, EMPTY_BIT, RANGE_SHIFT, range_starts
from lithify.pulsar.rounds.entry_scan import PlacedChunk, Unsettled, keys_schema
from lithify.pulsar.rounds.event_time import EventTimeComparison
from lithify.pulsar.rounds.round_messages import RoundRules


@dataclass(frozen=True, slots=True)
class ChunkedMessage:
    """The chunks of one message in order, of all ranges; `stays` says whether they do, if no key decides it."""

    chunks: tuple[PlacedChunk, ...]
    stays: bool | None

    @property
    def is_complete(self) -> bool:
        return self.stays is None

    @property
    def key(self) -> bytes | None:
        return self.chunks[0].chunk.key

    @property
    def last(self) -> PlacedChunk:
        """The chunk that completes it."""
        return self.chunks[-1]

    def settle(self, dead: DeadRecords, *, stays: bool) -> None:
        """Marks its chunks: the remaining ones in dirty ranges, the removed ones in clean ranges."""
        ordinals = np.array([placed.ordinal for placed in self.chunks if placed.clean is not stays], np.int64)
        if stays:
            dead.spare(ordinals)
        else:
            dead.add(ordinals)


def chunked_messages(chunks: Sequence[PlacedChunk]) -> list[ChunkedMessage]:
    messages = assembled(sorted(chunks, key=lambda placed: placed.ordinal), _identify)
    return [
        *(ChunkedMessage(tuple(message), None) for message in messages.complete),
        *(ChunkedMessage(tuple(message), True) for message in messages.waiting),
        *(ChunkedMessage((placed,), False) for placed in messages.lost),
    ]


def _identify(placed: PlacedChunk) -> ChunkId:
    chunk = placed.chunk
    return ChunkId((chunk.unit, chunk.key), chunk.chunk_id, chunk.total)


@dataclass(slots=True)
class ArrivedKeys:
    """What scans sent to one hash range of a partition: blocks of keys in `spool`, and what they could not settle.

    `ranges` is the number of ranges of entries.
    """

    rules: RoundRules
    ranges: int
    spool: Spool
    unsettled: Unsettled = field(default_factory=Unsettled)

    def find(self, finder: WinnerFinder, hash_range: HashRange) -> tuple[Tally, DeadRecords]:
        """The counts, and the messages of this hash range that are removed. Raises `EngineError`."""
        messages = chunked_messages(self.unsettled.chunks)
        whole = [message for message in messages if message.is_complete and message.key is not None]
        sealed = sorted(self.unsettled.sealed)
        if self.rules.by_event_time:
            compare = partial(EventTimeComparison, sealed=sealed, in_order=not whole)
            finder = replace(finder, compare=compare)
        open_source = partial(_opened, self, whole, sealed[0] if sealed else None)
        tally, dead = finder.find(open_source, hash_range)
        tally.dirty_keyed += sum(not message.last.clean for message in whole)
        for message, stays in [(message, self._stays(message, dead)) for message in messages]:
            message.settle(dead, stays=stays)
        return tally, dead

    def _stays(self, message: ChunkedMessage, dead: DeadRecords) -> bool:
        if message.stays is not None:
            return message.stays
        if message.key is None:
            return self.rules.retain_null_key
        last = message.last
        number, position = last.ordinal >> RANGE_SHIFT, last.ordinal & ((1 << RANGE_SHIFT) - 1)
        positions = dead.by_segment().get(number, DeadPositions() if last.clean else DeadPositions.all_but(()))
        return not bool(positions.flags(position, position + 1)[0])


def _opened(arrived: ArrivedKeys, whole: Sequence[ChunkedMessage], first_sealed: int | None, _: HashRange) -> KeySource:
    return _ArrivedSource(arrived, whole, first_sealed)


class _ArrivedSource:
    """A `KeySource` over the blocks that arrived and the chunked messages that are whole."""

    def __init__(self, arrived: ArrivedKeys, whole: Sequence[ChunkedMessage], first_sealed: int | None) -> None:
        self.schema = keys_schema(arrived.rules)
        self.starts = range_starts(arrived.ranges)
        self.tally = Tally()
        self.dead = DeadRecords(self.starts)
        self._spool = arrived.spool
        self._first_sealed = first_sealed
        self._whole = {
            portion: [message for message in whole if message.last.clean is (portion is Portion.CLEAN)]
            for portion in (Portion.CLEAN, Portion.DIRTY)
        }
        self._blocks = 0

    @property
    def dirty_read(self) -> float:
        return self._blocks / max(1, self._spool.dirty_blocks)

    def has(self, portion: Portion) -> bool:
        return self._spool.has(portion) or bool(self._whole.get(portion))

    def keys(self, portion: Portion, wanted: pa.Array | None = None) -> Iterator[pa.RecordBatch]:
        for batch in self._spool.keys(portion):
            self._blocks += portion is Portion.DIRTY
            yield self._with_dropped(batch)
        if self._whole.get(portion):
            yield self._of_chunks(self._whole[portion])

    def _with_dropped(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        ranks = batch.column(RANK).to_numpy()
        dropped = ranks & EMPTY_BIT > 0
        if self._first_sealed is not None:
            dropped &= ranks >> ORDINAL_SHIFT < self._first_sealed
        return batch.set_column(1, RANK, pa.array(ranks | dropped * DROPPED_BIT))

    def _of_chunks(self, messages: Sequence[ChunkedMessage]) -> pa.RecordBatch:
        ordinals = np.array([message.last.ordinal for message in messages], np.int64)
        columns = [
            pa.array([message.key for message in messages], pa.binary()),
            pa.array(ordinals << ORDINAL_SHIFT),
        ]
        if len(self.schema) > len(columns):
            columns.append(pa.array([message.chunks[0].chunk.event_time for message in messages], pa.int64()))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
