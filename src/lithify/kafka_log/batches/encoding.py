"""Columns as batches of version 2, at the offsets that the records have.

    offsets   3 4 7 | 9 ...            a batch begins anew where it has enough bytes or records,
    batch     base 3, deltas 0 1 4     where a delta has no 32 bits, and where one time would not do for all

A batch of LogAppendTime has one timestamp for all its records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from lithify.columnar.segment.schema import HEADERS, KEY, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, VALUE
from lithify.kafka_log.batches.codecs import NO_CODEC, compressed
from lithify.kafka_log.batches.header import HEADER_BYTES, MAGIC, NONE, BatchHeader, attributes_of

LOG_APPEND_TIME: Final = 1
_LARGEST_DELTA: Final = 2**31 - 1
_ANY_SIZE: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """A batch has at most so many records, and ends with the record that brings it to so many bytes of them."""

    records: int = 10_000
    bytes: int = 512 * 1024


class _Record(NamedTuple):
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def encoded(
    table: pa.RecordBatch | pa.Table,
    *,
    codec: int = NO_CODEC,
    leader_epoch: int = NONE,
    limits: BatchLimits = BatchLimits(),
) -> Iterator[bytes]:
    """The batches of records in the order of their offsets; of `table` only the columns of `COLUMNS` are read."""
    records = _records(table)
    start = 0
    while start < len(records):
        end = _end(records, start, limits)
        yield _batch(records[start:end], codec, leader_epoch)
        start = end


def empty_batch(first_offset: int, last_offset: int, leader_epoch: int = NONE) -> bytes:
    """A batch whose records are all gone: by it a reader gets to where they were."""
    return BatchHeader(first_offset, last_offset - first_offset, 0, 0, 0, leader_epoch=leader_epoch).with_records(b"")


def _records(table: pa.RecordBatch | pa.Table) -> list[_Record]:
    names = (OFFSET, TIMESTAMP, TIMESTAMP_TYPE, KEY, VALUE, HEADERS)
    *fields, headers = (table.column(name).to_pylist() for name in names)
    told = ([(one["key"], one["value"]) for one in own] if own else [] for own in headers)
    return [_Record(*row) for row in zip(*fields, told, strict=True)]


def _end(records: Sequence[_Record], start: int, limits: BatchLimits) -> int:
    """Where the batch ends that begins at `start`."""
    first, size = records[start], 0
    for at in range(start, min(len(records), start + limits.records)):
        record = records[at]
        fits = size < limits.bytes and record.offset - first.offset <= _LARGEST_DELTA
        same_time = record.timestamp_type != LOG_APPEND_TIME or record.timestamp == first.timestamp
        if not (fits and same_time and record.timestamp_type == first.timestamp_type):
            return at
        size += len(record.key or b"") + len(record.value or b"")
    return min(len(records), start + limits.records)


def _batch(records: Sequence[_Record], codec: int, leader_epoch: int) -> bytes:
    first = records[0]
    builder: Any = DefaultRecordBatchBuilder(MAGIC, NO_CODEC, 0, NONE, NONE, NONE, _ANY_SIZE)
    for record in records:
        builder.append(record.offset - first.offset, record.timestamp, record.key, record.value, record.headers)
    header = BatchHeader(
        base_offset=first.offset,
        last_offset_delta=records[-1].offset - first.offset,
        base_timestamp=first.timestamp,
        max_timestamp=max(record.timestamp for record in records),
        records=len(records),
        attributes=attributes_of(codec, first.timestamp_type),
        leader_epoch=leader_epoch,
    )
    return header.with_records(compressed(codec, bytes(builder.build())[HEADER_BYTES:]))
