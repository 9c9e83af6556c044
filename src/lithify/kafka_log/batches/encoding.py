"""Columns as batches of version 2, at the offsets that the records have.

    offsets   3 4 7 | 9 ...            a batch begins anew where it has enough bytes or records,
    batch     base 3, deltas 0 1 4     where a delta has no 32 bits, and where one time would not do for all

    room for a header   length 0 time offset key size   key   value size   value   headers   │ length 0 time ···
    ╰─── of the first record of each batch                                                   │

Arrow joins these columns, so that all batches stand in one buffer, in which only the headers are filled in
afterwards. No record becomes an object of Python, and its bytes are copied once. A batch of LogAppendTime has one
timestamp for all its records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.segment.schema import HEADERS, KEY, OFFSET, TIMESTAMP, TIMESTAMP_TYPE, VALUE
from lithify.kafka_log.batches.codecs import NO_CODEC, compressed
from lithify.kafka_log.batches.header import HEADER_BYTES, NONE, BatchHeader, attributes_of
from lithify.kafka_log.batches.legacy import NO_TIMESTAMP
from lithify.kafka_log.batches.varints import Integers, joined, varints, width_of

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1
_LARGEST_DELTA: Final = 2**31 - 1
_NO_BYTES: Final = pa.scalar(b"", pa.binary())
_NO_HEADERS: Final = pa.scalar(b"\0", pa.binary())


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """A batch has at most so many records, and ends with the record that brings it to so many bytes of them."""

    records: int = 10_000
    bytes: int = 512 * 1024


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches one after the other: batch n is in `data` from `starts[n]` to `starts[n + 1]`."""

    data: memoryview
    starts: tuple[int, ...]
    last_offsets: tuple[int, ...]


def encoded(
    table: pa.RecordBatch | pa.Table,
    *,
    codec: int = NO_CODEC,
    leader_epoch: int = NONE,
    limits: BatchLimits = BatchLimits(),
) -> Iterator[bytes]:
    """The batches of records in the order of their offsets; of `table` only the columns of `COLUMNS` are read."""
    batches = _batches(table, _numbers(table, TIMESTAMP_TYPE), limits, leader_epoch)
    for start, end in zip(batches.starts, batches.starts[1:], strict=False):
        data = bytes(batches.data[start:end])
        if codec == NO_CODEC:
            yield data
        else:
            header = BatchHeader.parsed(data)
            header = replace(header, attributes=header.attributes | codec)
            yield header.with_records(compressed(codec, data[HEADER_BYTES:]))


def encoded_with_create_time(
    table: pa.RecordBatch | pa.Table, *, leader_epoch: int = NONE, limits: BatchLimits = BatchLimits()
) -> Batches:
    """The same, not compressed, and with CreateTime for all records, so that each keeps its own timestamp."""
    return _batches(table, np.zeros(table.num_rows, np.int64), limits, leader_epoch)


def empty_batch(first_offset: int, last_offset: int, leader_epoch: int = NONE) -> bytes:
    """A batch whose records are all gone: by it a reader gets to where they were."""
    return BatchHeader(first_offset, last_offset - first_offset, 0, 0, 0, leader_epoch=leader_epoch).with_records(b"")


def _batches(table: pa.RecordBatch | pa.Table, types: Integers, limits: BatchLimits, leader_epoch: int) -> Batches:
    if not table.num_rows:
        return Batches(memoryview(b""), (0,), ())
    return _Columns.of(table, types).batches(limits, leader_epoch)


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of records, of which there is one at least."""

    offsets: Integers
    times: Integers
    types: Integers
    keys: pa.Array
    values: pa.Array
    headers: pa.Array | pa.Scalar
    key_sizes: Integers
    """-1 for null, as in records."""
    value_sizes: Integers
    bytes: Integers
    """Of key and value."""

    @classmethod
    def of(cls, table: pa.RecordBatch | pa.Table, types: Integers) -> _Columns:
        keys, values = _whole(table, KEY), _whole(table, VALUE)
        sizes, headers = (_sizes(keys), _sizes(values)), _told(_whole(table, HEADERS))
        there = _there(sizes[0]) + _there(sizes[1])
        return cls(_numbers(table, OFFSET), _numbers(table, TIMESTAMP), types, keys, values, headers, *sizes, there)

    def batches(self, limits: BatchLimits, leader_epoch: int) -> Batches:
        cuts = self._cuts(limits)
        base_times = self._base_times(cuts)
        records = self._joined(cuts, base_times)
        _, ends, content = records.buffers()
        starts = np.frombuffer(ends, np.int32)[cuts].tolist()
        data = np.frombuffer(content, np.uint8)[: starts[-1]]
        for header, start, end in zip(self._headers(cuts, base_times, leader_epoch), starts, starts[1:], strict=False):
            header.write_into(data, start, end)
        return Batches(data.data.toreadonly(), tuple(starts), tuple(self.offsets[cuts[1:] - 1].tolist()))

    def _cuts(self, limits: BatchLimits) -> Integers:
        """The number of the first record of each batch, and the number of records."""
        records = len(self.offsets)
        sizes = np.zeros(records + 1, np.int64)
        np.cumsum(self.bytes, out=sizes[1:])
        of_times = np.append(self._changes(), records)
        cuts = [0]
        while (start := cuts[-1]) < records:
            cuts.append(
                min(
                    start + limits.records,
                    int(sizes.searchsorted(sizes[start] + limits.bytes)),
                    int(self.offsets.searchsorted(min(int(self.offsets[start]) + _LARGEST_DELTA, 2**63 - 1), "right")),
                    int(of_times[of_times.searchsorted(start, "right")]),
                )
            )
        return np.array(cuts, np.int64)

    def _changes(self) -> Integers:
        """The numbers of records before which a batch has to end, since one time or type would not do for all."""
        if not self.types.any():
            return np.zeros(0, np.int64)
        other = self.types[1:] != self.types[:-1]
        other |= (self.types[1:] == LOG_APPEND_TIME) & (self.times[1:] != self.times[:-1])
        return np.flatnonzero(other) + 1

    def _base_times(self, cuts: Integers) -> Integers:
        """Of each batch. Some readers take a base of no time for a sign that no record has one."""
        first, types = self.times[cuts[:-1]], self.types[cuts[:-1]]
        return np.where((first == NO_TIMESTAMP) & (types == CREATE_TIME), 0, first)

    def _joined(self, cuts: Integers, base_times: Integers) -> pa.Array:
        """The bytes of each record; before the first one of a batch there is room for its header."""
        records, counts = len(self.offsets), np.diff(cuts)
        times = varints(self.times - base_times.repeat(counts))
        offsets = varints(self.offsets - self.offsets[cuts[:-1]].repeat(counts))
        key_sizes, value_sizes = varints(self.key_sizes), varints(self.value_sizes)
        of_headers = 1 if isinstance(self.headers, pa.Scalar) else _sizes(self.headers)
        lengths = self.bytes + sum(map(width_of, (times, offsets, key_sizes, value_sizes))) + of_headers + 1
        room = np.zeros(records, np.int64)
        room[cuts[:-1]] = HEADER_BYTES
        before = joined([varints(lengths), b"\0", times, offsets, key_sizes], records, room)
        parts = before, self.keys, joined([value_sizes], records), self.values, self.headers
        return pc.binary_join_element_wise(*parts, _NO_BYTES, null_handling="skip")

    def _headers(self, cuts: Integers, base_times: Integers, leader_epoch: int) -> Iterator[BatchHeader]:
        first, last = self.offsets[cuts[:-1]].tolist(), self.offsets[cuts[1:] - 1].tolist()
        facts = zip(
            first,
            last,
            base_times.tolist(),
            np.maximum.reduceat(self.times, cuts[:-1]).tolist(),
            np.diff(cuts).tolist(),
            self.types[cuts[:-1]].tolist(),
            strict=True,
        )
        for base, end, base_time, latest, records, kind in facts:
            yield BatchHeader(base, end - base, base_time, latest, records, attributes_of(NO_CODEC, kind), leader_epoch)


def _whole(table: pa.RecordBatch | pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _numbers(table: pa.RecordBatch | pa.Table, name: str) -> Integers:
    numbers: Integers = _whole(table, name).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers


def _there(sizes: Integers) -> Integers:
    return np.maximum(sizes, 0)


def _sizes(column: pa.Array) -> Integers:
    """In bytes; -1 for null."""
    ends = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    sizes = np.subtract(ends[1:], ends[:-1], dtype=np.int64)
    if column.null_count:
        sizes[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return sizes


def _told(headers: pa.Array) -> pa.Array | pa.Scalar:
    """The bytes of the headers of each record, from their number on; one value if no record has any."""
    if headers.null_count == len(headers) or not len(each := headers.flatten()):
        return _NO_HEADERS
    counts = pc.fill_null(pc.list_value_length(headers), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    names, values = each.field("key").cast(pa.binary()), each.field("value")
    name_sizes, value_sizes = varints(_sizes(names)), varints(_sizes(values))
    parts = joined([name_sizes], len(each)), names, joined([value_sizes], len(each)), values
    told = pc.binary_join_element_wise(*parts, _NO_BYTES, null_handling="skip")
    ends = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32())
    of_record = pc.binary_join(pa.ListArray.from_arrays(ends, told), _NO_BYTES)
    return pc.binary_join_element_wise(joined([varints(counts)], len(counts)), of_record, _NO_BYTES)
