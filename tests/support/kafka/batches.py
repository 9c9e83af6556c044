"""Record batches as brokers store them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lithify.kafka_log.batches.decoding import COLUMNS, EndKind, Gathered, KafkaRecord, Placed, records_of
from lithify.kafka_log.batches.encoding import encoded
from lithify.kafka_log.batches.frames import Frame
from lithify.kafka_log.batches.header import HEADER_BYTES, BatchHeader, attributes_of


def table_of(rows: Sequence[Any]) -> pa.RecordBatch:
    """Rows of offset, timestamp, timestamp type, key, value, headers."""
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(COLUMNS)]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


def columns(records: Sequence[KafkaRecord]) -> pa.RecordBatch:
    """The columns of records whose timestamps are of one type."""
    found = Gathered()
    found.add(Placed.of(records))
    return found.columns()


def columns_of(frames: Iterable[Frame]) -> pa.RecordBatch:
    """The columns of all their records."""
    found = Gathered()
    for frame in frames:
        found.add(Placed.of(records_of(frame)))
    return found.columns()


some_bytes = st.none() | st.binary(max_size=40)
some_headers = st.none() | st.lists(st.tuples(st.text(max_size=5), some_bytes), min_size=1, max_size=3)
records = st.tuples(
    st.integers(1, 2**33), st.integers(-1, 2**50), st.integers(0, 1), some_bytes, some_bytes, some_headers
)


@st.composite
def tables(draw: st.DrawFn) -> pa.RecordBatch:
    """Records in the order of their offsets, some far apart."""
    rows, offset = [], draw(st.integers(0, 2**40))
    for gap, *rest, headers in draw(st.lists(records, max_size=30)):
        own = None if headers is None else [{"key": name, "value": value} for name, value in headers]
        rows.append((offset, *rest, own))
        offset += gap
    return table_of(rows)


def varint(number: int) -> bytes:
    """As records have it: signed, seven bits a byte."""
    left, data = (number << 1) ^ (number >> 63), bytearray()
    while left > 0x7F:
        data.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*data, left])


def batch(offset: int, *values: bytes | None, producer: int = -1, epoch: int = 0, transactional: bool = False) -> bytes:
    """One batch, from an offset on."""
    data = _written(offset, [(b"k", value) for value in values])
    return changed(data, attributes_of(0, is_transactional=transactional), producer_id=producer, leader_epoch=epoch)


def transaction_end(offset: int, producer: int, kind: EndKind | int) -> bytes:
    """The end of a transaction."""
    return control_batch(offset, producer, struct.pack(">hh", 0, kind))


def control_batch(offset: int, producer: int, key: bytes) -> bytes:
    attributes = attributes_of(0, is_transactional=True, is_control=True)
    return changed(_written(offset, [(key, struct.pack(">hi", 0, 5))]), attributes, producer_id=producer)


def _written(offset: int, records: Sequence[tuple[bytes, bytes | None]]) -> bytes:
    rows = [(offset + n, 1, 0, key, value, None) for n, (key, value) in enumerate(records)]
    (data,) = encoded(table_of(rows))
    return data


def changed(data: bytes, attributes: int = 0, **more: int) -> bytes:
    """A batch with other fields in its header."""
    header: Any = replace(BatchHeader.parsed(data), attributes=attributes, **more)
    return bytes(header.with_records(data[HEADER_BYTES:]))
