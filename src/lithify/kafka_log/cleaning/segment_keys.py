"""The keys of a segment for the key pass: of the records that a reader of committed records gets.

The position of a record is its offset in the segment, for which 32 bits suffice; its ordinal has the number of the
segment above that. So neither depends on what else a task has read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa

from lithify.columnar.keypass.ranks import EXPIRED_BIT, ORDINAL_SHIFT, RANKED_KEYS, TOMBSTONE_BIT, Portion
from lithify.columnar.keypass.tally import Tally
from lithify.columnar.segment.dead_records import DeadPositions, Integers
from lithify.errors import RefusedError
from lithify.kafka_log.batches.decoding import header_of, records_of
from lithify.kafka_log.batches.frames import WholePart, frames_in
from lithify.kafka_log.directories.described import reading
from lithify.kafka_log.directories.files import opened
from lithify.kafka_log.transactions import Aborted, AbortedRecords

_NUMBER_SHIFT: Final = 32
MOST_SEGMENTS: Final = 1 << (63 - _NUMBER_SHIFT - ORDINAL_SHIFT)
RECORDS_AT_ONCE: Final = 20_000
BYTES_AT_ONCE: Final = 16 * 2**20
"""Of keys, whichever comes first; a batch is not divided."""


def ordinal_starts(segments: int) -> Integers:
    """The ordinal of the first position of each of so many segments, then the end."""
    return np.arange(segments + 1, dtype=np.int64) << _NUMBER_SHIFT


@dataclass(frozen=True, slots=True)
class SegmentKeys:
    """The keys of segment `number` of a round; tombstones whose batch says that they may go have expired."""

    number: int
    base_offset: int
    whole: WholePart
    aborted: tuple[Aborted, ...]
    now_ms: int

    def batches(self, file: BinaryIO, *, keyless: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """Batches of `RANKED_KEYS`; `keyless` gets offsets of records without one. Raises `BatchError` or `OSError`."""
        aborted, first = AbortedRecords(self.aborted), self.number << _NUMBER_SHIFT
        keys, ranks, size = list[bytes](), list[int](), 0
        for frame in frames_in(file, self.whole):
            header = header_of(frame)
            is_aborted = header.is_transactional and aborted.has(header.producer_id, header.base_offset)
            if header.is_control or is_aborted or not header.records:
                continue
            horizon_ms = header.delete_horizon_ms
            is_expired = horizon_ms is not None and horizon_ms <= self.now_ms
            tombstone = TOMBSTONE_BIT | (EXPIRED_BIT if is_expired else 0)
            for record in records_of(frame, header):
                if record.key is None:
                    keyless(record.offset)
                    continue
                ordinal = first + record.offset - self.base_offset
                keys.append(record.key)
                ranks.append(ordinal << ORDINAL_SHIFT | (tombstone if record.value is None else 0))
                size += len(record.key)
            if len(keys) >= RECORDS_AT_ONCE or size >= BYTES_AT_ONCE:
                yield _batch(keys, ranks)
                keys, ranks, size = [], [], 0
        if keys:
            yield _batch(keys, ranks)


@dataclass(frozen=True, slots=True)
class KeysOfFile:
    """A segment in a key pass. With `needs_keys` a dirty record without a key is refused."""

    path: Path
    keys: SegmentKeys
    is_dirty: bool
    needs_keys: bool

    @property
    def portion(self) -> Portion:
        return Portion.DIRTY if self.is_dirty else Portion.CLEAN

    def none_found(self) -> DeadPositions:
        """The records that lose as long as a key pass has found none that wins, or that is to go."""
        return DeadPositions.all_but(()) if self.is_dirty else DeadPositions()

    def batches(self, tally: Tally) -> Iterator[pa.RecordBatch]:
        """As `SegmentKeys.batches`, counted. Raises `DamagedError`, `InvalidInputError` or `RefusedError`."""
        with reading(self.path), opened(self.path) as file:
            for batch in self.keys.batches(file, keyless=self._note_keyless):
                tally.dirty_keyed += batch.num_rows * self.is_dirty
                yield batch

    def _note_keyless(self, offset: int) -> None:
        """No broker takes such a record into a topic that is compacted."""
        if self.is_dirty and self.needs_keys:
            raise RefusedError(
                f"{self.path}: the record at offset {offset} has no key, so the topic was not compacted when it came",
                hint="give the metadata log of the cluster, which says whether it is now, with metadata.log.dir",
            )


def _batch(keys: list[bytes], ranks: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.binary()), pa.array(ranks, pa.int64())], schema=RANKED_KEYS)
