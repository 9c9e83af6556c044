"""The records of a segment that a reader of committed records gets (`isolation.level=read_committed`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa

from lithify.kafka_log.batches.blocks import PlainBatches, pieces_in, plain_batches
from lithify.kafka_log.batches.decoding import Gathered, KafkaRecord, Placed, header_of, records_alone, records_of
from lithify.kafka_log.batches.frames import Frame, Piece, WholePart, pieces_of
from lithify.kafka_log.batches.header import MAGIC
from lithify.kafka_log.transactions import Aborted, AbortedRecords

RECORDS_AT_ONCE = 20_000
BYTES_AT_ONCE = 16 * 2**20
"""Of records on their way into columns, whichever comes first; a batch is not divided."""
_LEAST_AT_ONCE: Final = 8
"""Batches that are worth to be read at once."""


@dataclass(frozen=True, slots=True)
class Committed:
    """Which records of a log count: those in [start, end) that no transaction has aborted.

    `passed_over` are positions of frames in this segment that are known to be damaged.
    """

    start: int
    end: int
    aborted: Sequence[Aborted] = ()
    passed_over: Collection[int] = ()
    _aborted: AbortedRecords = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_aborted", AbortedRecords(self.aborted))

    def columns(self, file: BinaryIO, whole: WholePart | None = None) -> Iterator[pa.RecordBatch]:
        """The records of a segment, or of a part that was scanned, in order (`decoding.COLUMNS`).

        Raises `BatchError` or `OSError`.
        """
        found = Gathered()
        for placed in self._placed(pieces_of(file) if whole is None else pieces_in(file, whole)):
            found.add(placed)
            if len(found) >= RECORDS_AT_ONCE or found.bytes >= BYTES_AT_ONCE:
                yield found.columns()
                found = Gathered()
        if found:
            yield found.columns()

    def _placed(self, pieces: Iterable[Piece]) -> Iterator[Placed]:
        for piece in pieces:
            for batches, start, end in self._runs(piece):
                placed = None if batches is None else records_alone(batches, start, end)
                if placed is not None:
                    yield placed
                    continue
                for frame in piece.frames(start, end):
                    if frame.position in self.passed_over:  # its offset may be what is wrong
                        continue
                    if frame.magic >= MAGIC and frame.offset >= self.end:
                        return
                    yield Placed.of(self._in_range(self._records(frame)))

    def _runs(self, piece: Piece) -> Iterator[tuple[PlainBatches | None, int, int]]:
        """Its frames by their numbers, from and to; with the batches those that can be read at once."""
        every = len(piece.starts) - 1
        batches = plain_batches(piece)
        if batches is None or every < _LEAST_AT_ONCE or self.passed_over:
            yield None, 0, every
            return
        alone = batches.alone & (batches.first >= self.start) & (batches.last < self.end)
        if alone.sum() < _LEAST_AT_ONCE or not batches.are_whole:
            yield None, 0, every
            return
        for start, end in pairwise([0, *(np.flatnonzero(np.diff(alone)) + 1).tolist(), every]):
            yield (batches if alone[start] and end - start >= _LEAST_AT_ONCE else None), start, end

    def _in_range(self, records: Sequence[KafkaRecord]) -> Sequence[KafkaRecord]:
        """Mostly all: only the first and the last frame that are read may have others."""
        if not records or (self.start <= records[0].offset and records[-1].offset < self.end):
            return records
        return [record for record in records if self.start <= record.offset < self.end]

    def _records(self, frame: Frame) -> Sequence[KafkaRecord]:
        if frame.magic < MAGIC:
            return records_of(frame)
        header = header_of(frame)
        if header.is_control or header.last_offset < self.start:
            return ()
        if header.is_transactional and self._aborted.has(header.producer_id, header.base_offset):
            return ()
        return records_of(frame, header)
