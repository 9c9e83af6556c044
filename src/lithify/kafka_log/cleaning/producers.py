"""The last batch of each producer that is active: a cleaner keeps it, without its records if it must (KAFKA-5414).

A broker knows by it which sequence number comes next, and which epochs are fenced. A producer that has been silent
for `producer.id.expiration.ms` is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lithify.kafka_log.batches.header import NONE, BatchHeader


@dataclass(frozen=True, slots=True)
class LastBatch:
    """What a log has last of a producer; `data_offset` is the last one of its epoch, None if that has only markers."""

    epoch: int
    data_offset: int | None
    timestamp_ms: int

    def then(self, later: LastBatch) -> LastBatch:
        if later.data_offset is None and later.epoch == self.epoch:
            return LastBatch(later.epoch, self.data_offset, later.timestamp_ms)
        return later

    def is_of(self, header: BatchHeader) -> bool:
        """Whether a batch of this producer is to be kept for it."""
        if self.data_offset is None:
            return header.is_control and header.producer_epoch == self.epoch
        return header.last_offset == self.data_offset


LastBatches = Mapping[int, LastBatch]
"""By producer."""


def note_batch(last: dict[int, LastBatch], header: BatchHeader) -> None:
    """Adds the next batch of a log. A marker whose record is gone says nothing of its producer."""
    if header.producer_id == NONE or (header.is_control and not header.records):
        return
    data_offset = None if header.is_control else header.last_offset
    new = LastBatch(header.producer_epoch, data_offset, header.max_timestamp)
    known = last.get(header.producer_id)
    last[header.producer_id] = new if known is None else known.then(new)


def active_producers(segments: Iterable[LastBatches], since_ms: int) -> dict[int, LastBatch]:
    """Of a log, by what its segments have in order: those whose last batch is later than that."""
    last: dict[int, LastBatch] = {}
    for segment in segments:
        for producer_id, batch in segment.items():
            last[producer_id] = last[producer_id].then(batch) if producer_id in last else batch
    return {producer_id: batch for producer_id, batch in last.items() if batch.timestamp_ms > since_ms}
