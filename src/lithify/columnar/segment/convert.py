"""Converts records to Arrow columns and back, and divides batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.segment.schema import (
    BATCH_INDEX,
    ENTRY_ID,
    EVENT_TIME,
    HEADERS,
    HEADERS_TYPE,
    KEY,
    LEDGER_ID,
    METADATA,
    OFFSET,
    PARTITION,
    PASSED_THROUGH,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
)
from lithify.model.message import Envelope, MessageId
from lithify.model.record import TIMESTAMP_TYPES, Record

_record: Callable[[Iterable[Any]], Record] = partial(tuple.__new__, Record)
"""`Record._make` without its Python call, in half the time: readers create millions of records."""


def to_table(records: Sequence[Record]) -> pa.Table:
    """Records as a table of the columns that producers may give, in order. Raises errors of Arrow or Python."""
    return pa.table(
        {
            PARTITION: _integers(PARTITION, [r.partition for r in records], pa.int32()),
            OFFSET: _integers(OFFSET, [r.offset for r in records], pa.int64()),
            TIMESTAMP: _integers(TIMESTAMP, [r.timestamp for r in records], pa.int64()),
            TIMESTAMP_TYPE: pa.array([TIMESTAMP_TYPES.index(r.timestamp_type) for r in records], pa.int32()),
            KEY: pa.array([r.key for r in records], pa.binary()),
            VALUE: pa.array([r.value for r in records], pa.binary()),
            HEADERS: pa.array(
                [[{"key": k, "value": v} for k, v in r.headers] if r.headers else None for r in records], HEADERS_TYPE
            ),
        }
    )


def envelope_columns(records: Sequence[Record]) -> dict[str, pa.Array]:
    """The columns of what records of Pulsar have besides, null for a record that has nothing of it."""
    envelopes = [r.envelope for r in records]
    return {
        LEDGER_ID: _integers(LEDGER_ID, [e and e.id.ledger for e in envelopes], pa.int64()),
        ENTRY_ID: _integers(ENTRY_ID, [e and e.id.entry for e in envelopes], pa.int64()),
        BATCH_INDEX: _integers(BATCH_INDEX, [e and e.id.batch_index for e in envelopes], pa.int32()),
        EVENT_TIME: _integers(EVENT_TIME, [e and e.event_time for e in envelopes], pa.int64()),
        PASSED_THROUGH: pa.array([e and (e.passed_through or None) for e in envelopes], pa.bool_()),
        METADATA: pa.array([e and e.metadata for e in envelopes], pa.binary()),
    }


def _integers(name: str, values: Sequence[int | None], kind: pa.DataType) -> pa.Array:
    """Raises `TypeError` for other numbers: with a type of integers Arrow would take 1.5 as 1."""
    array = pa.array(values)
    if not (pa.types.is_integer(array.type) or pa.types.is_null(array.type)):
        wrong = next(value for value in values if value is not None and not pa.types.is_integer(pa.array([value]).type))
        raise TypeError(f"its {name} {wrong!r} is not an integer")
    return array.cast(kind)


def records_of_key(table: pa.Table, key: bytes | None) -> pa.Table:
    """The records of a key, of any partition: who wrote them may have had a partitioner of their own. None: all."""
    return table if key is None else table.filter(pc.equal(table.column(KEY), pa.scalar(key, pa.binary())))


def to_records(table: pa.Table) -> Iterator[Record]:
    """The records of a table with the columns of a segment, in order."""
    for batch in table.to_batches(max_chunksize=8192):
        yield from map(_record, zip(*_columns(batch), strict=False))  # `repeat` is infinite


def _columns(batch: pa.RecordBatch) -> Iterator[Iterable[Any]]:
    """The columns of a batch as Python values, in the order of the fields of `Record`."""
    for name in (KEY, VALUE, TIMESTAMP):
        yield batch.column(name).to_pylist()
    headers = batch.column(HEADERS)
    if headers.null_count == len(headers):  # most topics have no headers, and lists are slow to convert
        yield repeat(())
    else:
        yield (tuple((h["key"], h["value"]) for h in row or ()) for row in headers.to_pylist())
    for name in (PARTITION, OFFSET):
        yield batch.column(name).to_pylist()
    yield map(TIMESTAMP_TYPES.__getitem__, batch.column(TIMESTAMP_TYPE).to_pylist())
    yield _envelopes(batch) if LEDGER_ID in batch.schema.names else repeat(None)


def _envelopes(batch: pa.RecordBatch) -> Iterator[Envelope | None]:
    """Null for a record without a whole id, which only arrivals may have."""
    names = (LEDGER_ID, ENTRY_ID, BATCH_INDEX, EVENT_TIME, METADATA, PASSED_THROUGH)
    for ledger, entry, index, event_time, metadata, passed in zip(
        *(batch.column(name).to_pylist() for name in names), strict=True
    ):
        whole = None not in (ledger, entry, index)
        yield Envelope(MessageId(ledger, entry, index), event_time, metadata, bool(passed)) if whole else None


def pieces(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of at most `most_bytes`, or of a single larger row."""
    for batch in batches:
        pending = [batch]
        del batch  # no reference stays here while the next is made
        while pending:
            if pending[-1].nbytes <= most_bytes or pending[-1].num_rows == 1:
                yield pending.pop()
            else:
                half = pending[-1].num_rows // 2
                pending += [pending[-1].slice(half), pending.pop().slice(0, half)]
