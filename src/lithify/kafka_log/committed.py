"""The records of a segment that a reader of committed records gets (`isolation.level=read_committed`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from lithify.kafka_log.batches.decoding import Gathered, KafkaRecord, header_of, records_of
from lithify.kafka_log.batches.frames import Frame, WholePart, frames_in, frames_of
from lithify.kafka_log.batches.header import MAGIC
from lithify.kafka_log.transactions import Aborted, AbortedRecords

RECORDS_AT_ONCE = 20_000
BYTES_AT_ONCE = 16 * 2**20
"""Of records on their way into columns, whichever comes first; a batch is not divided."""


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
        for frame in frames_of(file) if whole is None else frames_in(file, whole):
            if frame.position in self.passed_over:
                continue
            if frame.magic >= MAGIC and frame.offset >= self.end:
                break
            found.add(self._in_range(self._records(frame)))
            if len(found) >= RECORDS_AT_ONCE or found.bytes >= BYTES_AT_ONCE:
                yield found.columns()
                found = Gathered()
        if found:
            yield found.columns()

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
