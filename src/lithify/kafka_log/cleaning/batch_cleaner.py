"""What a cleaner leaves of a batch, by the rules of Kafka's own.

all records stay           the batch, byte for byte
some stay                  the same header: first and last offset, sequence, epoch, codec
none stays                 nothing, unless it is the last batch of a producer or of the round: then its header
aborted                    no record stays
tombstones stay            for delete.retention.ms, counted from the first round that met them: that one writes the
                           time at which they may go into the batch (KIP-534)
marker                     stays while its transaction has a batch; then the same time is written into it
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from lithify.kafka_log.batches.codecs import compressed, decompressed
from lithify.kafka_log.batches.decoding import EndKind, KafkaRecord, records_of, transaction_end_of
from lithify.kafka_log.batches.frames import Frame
from lithify.kafka_log.batches.header import DELETE_HORIZON, HEADER_BYTES, NONE, BatchHeader, attributes_of
from lithify.kafka_log.batches.plain import copied_records, in_64_bits
from lithify.kafka_log.cleaning.producers import LastBatches
from lithify.kafka_log.transactions import Aborted, AbortedRecords

LAST_MS: Final = 2**63 - 1
"""The last time that a batch can state: of tombstones that stay for ever."""


@dataclass(frozen=True, slots=True)
class CleanRules:
    """Of a round over one log, as far as they matter to some of its segments."""

    now_ms: int
    delete_retention_ms: int
    end: int
    last_batches: LastBatches
    aborted: tuple[Aborted, ...]


class CleanedBatch(NamedTuple):
    """What is left of a batch, with its header."""

    header: BatchHeader
    data: bytes


class AbortedEntry(NamedTuple):
    """An aborted transaction of which a batch is left, as an index of transactions has it."""

    producer_id: int
    first_offset: int
    last_offset: int
    stable_offset: int
    """The last stable offset once it had ended."""


class BatchCleaner:
    """Cleans batches in the order of a log; `open_before` are the transactions that are open where they begin."""

    def __init__(self, rules: CleanRules, open_before: Mapping[int, int]) -> None:
        self.aborted: list[AbortedEntry] = []
        self._rules, self._open, self._records = rules, dict(open_before), AbortedRecords(rules.aborted)

    def cleaned(self, frame: Frame, header: BatchHeader, stays: Callable[[KafkaRecord], bool]) -> CleanedBatch | None:
        """What is left of a batch, None for nothing; `stays` is asked of records with a key. Raises `BatchError`."""
        needless = self._is_needless(frame, header)
        goes = needless and (not header.is_control or self._is_due(header))
        records = [] if goes else records_of(frame, header)
        left = [r for r in records if header.is_control or (r.key is not None and stays(r))]
        if left:
            return self._with_records(frame, header, left, is_needless=needless)
        return CleanedBatch(*_emptied(header)) if self._keeps_header(header) else None

    def _is_needless(self, frame: Frame, header: BatchHeader) -> bool:
        """Whether a batch of data was aborted, or a marker has no batch left to be the end of."""
        producer, first = header.producer_id, header.base_offset
        if not header.is_control:
            if header.is_transactional:
                self._open.setdefault(producer, first)
            return header.is_transactional and self._records.has(producer, first)
        ending = transaction_end_of(frame, header)
        if ending is None:
            return not header.records
        start = self._open.pop(producer, None)
        if start is not None and ending.kind is EndKind.ABORT:
            stable = min(self._open.values(), default=ending.offset + 1)
            self.aborted.append(AbortedEntry(producer, start, ending.offset, stable))
        return start is None

    def _is_due(self, header: BatchHeader) -> bool:
        return header.delete_horizon_ms is not None and header.delete_horizon_ms <= self._rules.now_ms

    def _keeps_header(self, header: BatchHeader) -> bool:
        last = self._rules.last_batches.get(header.producer_id) if header.producer_id != NONE else None
        return (last is not None and last.is_of(header)) or header.last_offset + 1 == self._rules.end

    def _with_records(
        self, frame: Frame, header: BatchHeader, left: Sequence[KafkaRecord], *, is_needless: bool
    ) -> CleanedBatch:
        horizon_ms = header.delete_horizon_ms
        deletes = is_needless or (not header.is_control and any(record.value is None for record in left))
        sets_horizon = deletes and horizon_ms is None
        if len(left) == header.records and not sets_horizon:
            return CleanedBatch(header, frame.data)
        if sets_horizon:
            horizon_ms = min(self._rules.now_ms + self._rules.delete_retention_ms, LAST_MS)
        new = replace(
            header,
            attributes=header.attributes | (DELETE_HORIZON if sets_horizon else 0),
            base_timestamp=left[0].timestamp if horizon_ms is None else horizon_ms,
            max_timestamp=header.max_timestamp if header.timestamp_type else max(r.timestamp for r in left),
            records=len(left),
        )
        times = {r.offset - new.base_offset: in_64_bits(r.timestamp - new.base_timestamp) for r in left}
        body = copied_records(decompressed(header.codec, frame.data[HEADER_BYTES:]), times)
        return CleanedBatch(new, new.with_records(compressed(new.codec, body)))


def _emptied(header: BatchHeader) -> tuple[BatchHeader, bytes]:
    """The header of a batch without its records."""
    attributes = attributes_of(
        0, header.timestamp_type, is_transactional=header.is_transactional, is_control=header.is_control
    )
    empty = replace(header, attributes=attributes, base_timestamp=NONE, records=0)
    return empty, empty.with_records(b"")
