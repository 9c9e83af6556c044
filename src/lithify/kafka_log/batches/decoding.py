"""The records of frames, and their columns.

    frame ─► checksum ─► decompressed ─► records, in order ─► columns of many frames

Compiled code reads the records: it gets them without compression, as its own codecs know no limit.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import IntEnum
from operator import lt
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch

from lithify.columnar.segment.schema import HEADERS, HEADERS_TYPE, KEY, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, VALUE
from lithify.kafka_log.batches.blocks import PlainBatches
from lithify.kafka_log.batches.codecs import NO_CODEC, CodecError, decompressed
from lithify.kafka_log.batches.frames import MOST_RECORDS, Frame
from lithify.kafka_log.batches.header import HEADER_BYTES, MAGIC, BatchHeader, has_right_checksum
from lithify.kafka_log.batches.legacy import NO_TIMESTAMP, LegacyRecord, legacy_records_of
from lithify.kafka_log.batches.plain import RecordError, check_headers, in_64_bits, plain_records

COLUMNS = pa.schema(
    [
        pa.field(OFFSET, pa.int64(), nullable=False),
        pa.field(TIMESTAMP, pa.int64(), nullable=False),
        pa.field(TIMESTAMP_TYPE, pa.int32(), nullable=False),
        pa.field(KEY, pa.binary()),
        pa.field(VALUE, pa.binary()),
        pa.field(HEADERS, HEADERS_TYPE),
    ]
)
"""Headers are null for a record without any, as in segments."""
_KIND = struct.Struct(">hh")
_CHECKED_BYTES = 4 * 2**20
"""Records of more bytes than a batch has by default can have so many headers that no memory holds them."""


class KafkaRecord(Protocol):
    """What a batch has of a record. Its timestamp is -1 if it has none."""

    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


class EndKind(IntEnum):
    """How a transaction has ended, by Kafka's numbers."""

    ABORT = 0
    COMMIT = 1


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """The end of the transaction of a producer, at an offset that no consumer gets."""

    offset: int
    producer_id: int
    kind: EndKind


def header_of(frame: Frame) -> BatchHeader:
    """Of a frame of version 2, once its checksum is right. Raises `BatchError`."""
    if not has_right_checksum(frame.data):
        raise frame.error("the checksum of a batch is wrong")
    header = BatchHeader.parsed(frame.data)
    if header.base_offset < 0 or header.last_offset_delta < 0 or header.records < 0:
        raise frame.error("a batch with a negative offset or number of records")
    return header


def records_of(frame: Frame, header: BatchHeader | None = None) -> Sequence[KafkaRecord]:
    """The records in a frame, in order; of a control batch its control records.

    `header` is what `header_of` has returned of it, if that was called. Raises `BatchError` if they are damaged.
    """
    if frame.magic < MAGIC:
        return legacy_records_of(frame)
    header = header_of(frame) if header is None else header
    if not header.records:  # whatever else it has: a cleaner leaves the codec of records that are gone
        return ()
    if header.records > MOST_RECORDS:
        raise frame.error(f"a batch of {header.records} records, but Lithify reads at most {MOST_RECORDS}")
    try:
        body = decompressed(header.codec, frame.data[HEADER_BYTES:])
        if len(body) > _CHECKED_BYTES:
            check_headers(header.records, body)
        records = _read(frame, header, body)
    except (CodecError, CorruptRecordException, RecordError) as error:
        raise frame.error(str(error)) from error
    except (OverflowError, MemoryError) as error:  # compiled code tries to make bytes of any size below 2^63
        raise frame.error("a record states a size that nothing can have") from error
    _check_offsets(frame, header, records)
    return records


def transaction_end_of(frame: Frame, header: BatchHeader | None = None) -> TransactionEnd | None:
    """The end of a transaction; None for a control batch of another kind, and for one whose record is gone."""
    header = header_of(frame) if header is None else header
    for record in records_of(frame, header):
        key = record.key or b""
        if len(key) < _KIND.size:
            raise frame.error("a control record whose key is too short")
        _, kind = _KIND.unpack_from(key)
        if kind in (EndKind.ABORT, EndKind.COMMIT):
            return TransactionEnd(record.offset, header.producer_id, EndKind(kind))
    return None


class Placed(NamedTuple):
    """Records, and the offsets and timestamps that they have."""

    records: Sequence[KafkaRecord]
    offsets: Sequence[int]
    times: Sequence[int]

    @classmethod
    def of(cls, records: Sequence[KafkaRecord]) -> Placed:
        """As they state them."""
        return cls(records, [record.offset for record in records], [record.timestamp for record in records])


class Gathered:
    """Records on their way into columns. Lists of values take a fraction of the time that rows take."""

    __slots__ = ("_headers", "_keys", "_offsets", "_times", "_types", "_values", "bytes")

    def __init__(self) -> None:
        self.bytes = 0
        """Of all keys and values, also of headers."""
        self._offsets, self._times, self._types = list[int](), list[int](), list[int]()
        self._keys, self._values = list[bytes | None](), list[bytes | None]()
        self._headers: list[Sequence[tuple[str, bytes | None]]] = []

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, placed: Placed) -> None:
        """Records of one frame or of many, whose timestamps are all of one type."""
        records = placed.records
        self._offsets += placed.offsets
        self._times += placed.times
        self._types += [record.timestamp_type for record in records[:1]] * len(records)
        keys, values = [record.key for record in records], [record.value for record in records]
        self._keys += keys
        self._values += values
        self.bytes += sum(map(len, filter(None, keys))) + sum(map(len, filter(None, values)))
        headers = [record.headers for record in records]
        self._headers += headers
        if any(headers):
            self.bytes += sum(len(value or b"") for own in headers for _, value in own)

    def columns(self) -> pa.RecordBatch:
        """The columns of all, with `COLUMNS` as schema."""
        arrays = [
            pa.array(self._offsets, pa.int64()),
            pa.array(self._times, pa.int64()),
            pa.array(self._types, pa.int32()),
            pa.array(self._keys, pa.binary()),
            pa.array(self._values, pa.binary()),
            _header_column(self._headers),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


def records_alone(batches: PlainBatches, start: int, end: int) -> Placed | None:
    """The records of some whole batches, by their numbers, which are `alone`; None if they may be damaged."""
    body = batches.records_in(start, end)
    try:
        records = [*DefaultRecordBatch(BatchHeader(0, end - start - 1, 0, 0, end - start).with_records(body))]
    except (CorruptRecordException, UnicodeDecodeError, OverflowError, MemoryError):
        return None
    deltas = np.array([record.offset for record in records], np.int64)
    offsets = batches.first[start:end] + deltas
    times = batches.heads["first_ms"][start:end] + np.array([record.timestamp for record in records], np.int64)
    if (deltas < 0).any() or (offsets > batches.last[start:end]).any():
        return None
    return Placed(records, offsets.tolist(), times.tolist())


def _header_column(headers: Sequence[Sequence[tuple[str, bytes | None]]]) -> pa.Array:
    if not any(headers):
        return pa.nulls(len(headers), HEADERS_TYPE)
    told = [[{"key": name, "value": value} for name, value in own] or None for own in headers]
    return pa.array(told, HEADERS_TYPE)


def _read(frame: Frame, header: BatchHeader, body: bytes) -> Sequence[KafkaRecord]:
    with suppress(UnicodeDecodeError):
        return _read_compiled(frame, header, body)
    return plain_records(header, body)


def _read_compiled(frame: Frame, header: BatchHeader, body: bytes) -> Sequence[KafkaRecord]:
    if header.base_timestamp != NO_TIMESTAMP or header.timestamp_type:
        data = frame.data if header.codec == NO_CODEC else header.without_codec(frame.data, body)
        return [*DefaultRecordBatch(data)]
    # The library takes this base for a sign that no record has a time.
    found = DefaultRecordBatch(replace(header, base_timestamp=0, attributes=0).with_records(body))
    times = ((r, in_64_bits(r.timestamp + NO_TIMESTAMP)) for r in found)
    return [LegacyRecord(r.offset, time, 0, r.key, r.value, r.headers) for r, time in times]


def _check_offsets(frame: Frame, header: BatchHeader, records: Sequence[KafkaRecord]) -> None:
    offsets = [record.offset for record in records]
    ends = offsets[:1] + offsets[-1:]
    if not all(map(lt, offsets, offsets[1:])) or not all(header.base_offset <= at <= header.last_offset for at in ends):
        raise frame.error("the offsets of its records are not in order, or not in the batch")
