"""Checks appended records as whole columns and assigns them to partitions.

    records or a table ──► columns ──► rules ──► partitions ──► {0: table, 3: table, ...}
                         columns    admission  partitioner      in order of arrival

The rules, and the texts of refusals, come from `lifecycle.admission` (C16, the settings on size and
time). One invalid record refuses the whole batch; the error names the first one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lithify.columnar.arrivals.arrived_columns import Given, given_batches, given_schema, refused_record
from lithify.columnar.arrivals.message_ids import AscendingIds
from lithify.columnar.arrivals.partitioner import partitions_of
from lithify.columnar.segment.schema import (
    BATCH_INDEX,
    ENTRY_ID,
    EVENT_TIME,
    HEADERS,
    KEY,
    LEDGER_ID,
    METADATA,
    OFFSET,
    PARTITION,
    PASSED_THROUGH,
    TIMESTAMP,
    TIMESTAMP_TYPE,
    VALUE,
    VALUE_SIZE,
    schema_in,
    schema_of,
)
from lithify.model.message import Envelope, MessageId
from lithify.model.record import LAST_OFFSET, TIMESTAMP_TYPES, Record
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.staged import Destination
from lithify.rules.lifecycle.admission import (
    keeps_times,
    message_id_refusal,
    offset_refusal,
    partition_refusal,
    refusal,
    timestamp_type_refusal,
)

_LARGEST = 2**63 - 1

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]


def receive(batch: Given, topic: Destination, *, now_ms: int, keep_offsets: bool) -> dict[int, pa.Table]:
    """The records of `batch` by partition, in order of arrival.

    Each table has the columns of a segment, without `keep_offsets` all but `offset` (`with_offsets` adds the
    offsets). A partition without records is left out. Raises `InvalidRecordError`
    or `InvalidInputError`; then the whole batch is refused.
    """
    return Arrival(topic, now_ms, keep_offsets).received(batch)


def with_offsets(table: pa.Table, base_offset: int) -> pa.Table:
    """`table`, in place of its offsets if it has any with consecutive ones from `base_offset` on."""
    schema = schema_in(table.column_names)
    offsets = pa.array(np.arange(base_offset, base_offset + table.num_rows, dtype=np.int64))
    columns = [offsets if name == OFFSET else table.column(name) for name in schema.names]
    return pa.Table.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class Sorted:
    """The records of one piece, by partition."""

    records: pa.RecordBatch
    order: Ints
    """Their rows in the piece."""
    starts: tuple[int, ...]
    """Where a partition begins."""
    partitions: tuple[int, ...]
    """Which one that is."""

    @property
    def ends(self) -> tuple[int, ...]:
        return (*self.starts[1:], len(self.order))


class Arrival:
    """State of one batch across its pieces: last offset by partition, round robin of keyless records.

    `keyless` is where that begins, if not where the topic is.
    """

    def __init__(self, topic: Destination, now_ms: int, keep_offsets: bool, keyless: int | None = None) -> None:
        self._settings, self._partitions = topic.settings, len(topic.log_ends)
        self._now_ms, self._keep_offsets = now_ms, keep_offsets
        self._own_times = keeps_times(self._settings, keep_offsets=keep_offsets)
        self._schema = schema_of(self._settings)
        self._ids = AscendingIds() if LEDGER_ID in self._schema.names else None
        self._last_offsets: dict[int, int] = {}
        # Keyless records continue the topic's round robin, whichever producer appends.
        self.keyless = sum(topic.log_ends) if keyless is None else keyless

    def received(self, batch: Given) -> dict[int, pa.Table]:
        """As `receive` returns and raises it."""
        parts: dict[int, list[pa.RecordBatch]] = {}
        index = 0
        for given in given_batches(batch, given_schema(self._settings)):
            piece = self.sorted(given, index)
            for partition, start, end in zip(piece.partitions, piece.starts, piece.ends, strict=True):
                parts.setdefault(partition, []).append(piece.records.slice(start, end - start))
            index += given.num_rows
        return {partition: pa.Table.from_batches(parts[partition]) for partition in sorted(parts)}

    def sorted(self, given: pa.RecordBatch, first_index: int) -> Sorted:
        """The records of one checked piece with rows. `first_index` is its first record's in the batch.

        Raises `InvalidRecordError`.
        """
        places = self._places(given)
        order = np.argsort(places, kind="stable")
        starts = [0, *(np.flatnonzero(np.diff(places[order])) + 1).tolist()]
        self._check(given, places, (order, starts), first_index)
        records = self._completed(given, places)
        if len(starts) > 1:
            records = records.take(pa.array(order))
        return Sorted(records, order, tuple(starts), tuple(places[order[starts]].tolist()))

    def _places(self, given: pa.RecordBatch) -> Places:
        """The partition of each record, int32: the given one, or the partitioner's."""
        column, keys = given.column(PARTITION), given.column(KEY)
        places: Places = column.fill_null(0).to_numpy()
        if column.null_count:
            unplaced = column.is_null()
            keys = keys if column.null_count == len(column) else keys.filter(unplaced)
            places = places.copy()
            places[_flags(unplaced)] = partitions_of(keys, self._partitions, round_from=self.keyless)
            self.keyless += keys.null_count
        return places

    def _check(self, given: pa.RecordBatch, places: Places, sorting: tuple[Ints, list[int]], first_index: int) -> None:
        refused = _refused_by_settings(given, self._settings, now_ms=self._now_ms, keep_offsets=self._keep_offsets)
        refused |= (places < 0) | (places >= self._partitions)
        before = None
        if self._keep_offsets:
            before = self._offsets_before(given, places, *sorting)
            offsets = _offsets(given)
            refused |= _flags(given.column(PARTITION).is_null()) | (offsets <= before) | (offsets > LAST_OFFSET)
            types = given.column(TIMESTAMP_TYPE).fill_null(0).to_numpy()
            refused |= (types < 0) | (types >= len(TIMESTAMP_TYPES))
        if self._ids is not None:
            refused |= self._ids.refused(given, places, *sorting) | _flags(given.column(PARTITION).is_null())
            refused |= _flags(given.column(PASSED_THROUGH).is_valid()) & _flags(given.column(KEY).is_valid())
        if refused.any():
            row = int(np.argmax(refused))
            record = given.slice(row, 1).to_pylist()[0]
            raise refused_record(first_index + row, self._reason(record, row, before))

    def _offsets_before(self, given: pa.RecordBatch, places: Places, order: Ints, starts: list[int]) -> Ints:
        """For each record the offset of the previous one of its partition, or -1: int64.

        `order` sorts the rows by partition; `starts` are the positions in it where a partition begins.
        """
        offsets = _offsets(given)
        before = np.full(len(offsets), -1, np.int64)
        before[order[1:]] = offsets[order[:-1]]
        for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
            partition = int(places[order[start]])
            before[order[start]] = self._last_offsets.get(partition, -1)
            self._last_offsets[partition] = int(offsets[order[end - 1]])
        return before

    def _reason(self, given: dict[str, Any], row: int, before: Ints | None) -> str:
        """Why a record, the one in `row`, is refused; for settings the text of `admission`."""
        partition, offset, kind = given[PARTITION], given[OFFSET], given[TIMESTAMP_TYPE]
        reason = None if partition is None else partition_refusal(partition, self._partitions)
        if reason is not None:
            return reason
        pairs, envelope = tuple((h["key"], h["value"]) for h in given[HEADERS] or ()), _envelope(given)
        record = Record(given[KEY], given[VALUE], given[TIMESTAMP], pairs, partition, envelope=envelope)
        reason = refusal(record, self._settings, now_ms=self._now_ms, keep_offsets=self._keep_offsets)
        if reason is None and self._ids is not None and envelope is not None:
            reason = message_id_refusal(envelope.id, self._ids.before(row))
        return (
            reason
            or offset_refusal(partition, offset, None if before is None else int(before[row]))
            or timestamp_type_refusal(kind)
        )

    def _completed(self, given: pa.RecordBatch, places: Places) -> pa.RecordBatch:
        """The columns of a segment, with defaults for those that the producer left out."""
        by_log = self._settings.message_timestamp_type == "LogAppendTime" and not self._own_times
        count = given.num_rows
        if by_log:
            timestamps: pa.Array = pa.array(np.full(count, self._now_ms, np.int64))
        else:
            timestamps = given.column(TIMESTAMP).fill_null(self._now_ms)
        if self._keep_offsets:
            types = given.column(TIMESTAMP_TYPE).fill_null(0)
        else:
            types = pa.array(np.full(count, by_log, np.int32))
        columns = {
            PARTITION: pa.array(places),
            OFFSET: given.column(OFFSET),
            TIMESTAMP: timestamps,
            TIMESTAMP_TYPE: types,
            KEY: given.column(KEY),
            VALUE: given.column(VALUE),
            VALUE_SIZE: pc.binary_length(given.column(VALUE)),
            HEADERS: given.column(HEADERS),
        }
        schema = self._schema if self._keep_offsets else without_offset(self._schema)
        arrays = [columns[name] if name in columns else given.column(name) for name in schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def without_offset(schema: pa.Schema) -> pa.Schema:
    """The columns of records that have no offset yet."""
    return schema.remove(schema.get_field_index(OFFSET))


def _envelope(given: dict[str, Any]) -> Envelope | None:
    if given.get(LEDGER_ID) is None or given[ENTRY_ID] is None or given[BATCH_INDEX] is None:
        return None
    message_id = MessageId(given[LEDGER_ID], given[ENTRY_ID], given[BATCH_INDEX])
    return Envelope(message_id, given[EVENT_TIME], given[METADATA], bool(given[PASSED_THROUGH]))


def _refused_by_settings(given: pa.RecordBatch, settings: TopicSettings, *, now_ms: int, keep_offsets: bool) -> Flags:
    """For each record whether `admission.refusal` refuses it: bool."""
    header_bytes, refused = _header_bytes(given.column(HEADERS))
    if settings.null_key == "reject" and settings.compacts:
        keyless = _flags(given.column(KEY).is_null())
        if PASSED_THROUGH in given.schema.names:
            keyless &= _flags(given.column(PASSED_THROUGH).is_null())  # C53
        refused |= keyless
    refused |= _sizes(given.column(KEY)) + _sizes(given.column(VALUE)) + header_bytes > settings.max_message_bytes
    timestamps = given.column(TIMESTAMP)
    replaced = settings.message_timestamp_type == "LogAppendTime"
    if not (keeps_times(settings, keep_offsets=keep_offsets) or replaced) and timestamps.null_count < len(given):
        latest = min(now_ms + settings.message_timestamp_after_max_ms, _LARGEST)
        own = timestamps.fill_null(0).to_numpy()
        refused |= (own < 0) | (own > latest)
    return refused


def _header_bytes(headers: pa.Array) -> tuple[Ints, Flags]:
    """For each record: bytes of its headers (int64), and whether a header has no name (bool)."""
    count = len(headers)
    if headers.null_count == count:
        return np.zeros(count, np.int64), np.zeros(count, np.bool_)
    flat = headers.flatten()
    names, values = pc.struct_field(flat, "key"), pc.struct_field(flat, "value")
    ends = np.cumsum(pc.fill_null(pc.list_value_length(headers), 0).to_numpy())

    def per_record(numbers: Ints) -> Ints:
        sums = np.concatenate([[0], np.cumsum(numbers)])
        counts: Ints = np.diff(sums[ends], prepend=0)
        return counts

    return per_record(_sizes(names) + _sizes(values)), per_record(_flags(names.is_null()).astype(np.int64)) > 0


def _sizes(column: pa.Array) -> Ints:
    sizes: Ints = pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
    return sizes


def _offsets(given: pa.RecordBatch) -> Ints:
    offsets: Ints = given.column(OFFSET).fill_null(-1).to_numpy()
    return offsets


def _flags(column: pa.Array) -> Flags:
    flags: Flags = column.to_numpy(zero_copy_only=False)
    return flags
