"""The messages of entries as records with their ids (C52, C53).

    message in a batch, or on its own     key, payload, properties, event time; the rest as `metadata`
    the same, encrypted on its own        its key, and the payload as it is
    encrypted batch, chunk                one record without a key, passed through whole
    marker, message compacted out         no record

`metadata` is a `MessageMetadata`: of the entry, and of the message where that has the same field. What has a
column is left out, but the fields that Pulsar requires.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from lithify.columnar.segment.schema import (
    BATCH_INDEX,
    ENTRY_ID,
    EVENT_TIME,
    HEADERS,
    KEY,
    LEDGER_ID,
    METADATA,
    PARTITION,
    PASSED_THROUGH,
    TIMESTAMP,
    VALUE,
)
from lithify.model.message import NO_BATCH, MessageId
from lithify.pulsar.columns import Kind, Messages, metadata_of, properties_of, values_of
from lithify.pulsar.format.entry import entry_of
from lithify.pulsar.format.wire_pb2 import MessageMetadata, SingleMessageMetadata

_IN_COLUMNS: Final = ("partition_key", "properties", "event_time", "null_value", "compacted_batch_indexes")
_OF_THE_PAYLOAD: Final = ("compression", "uncompressed_size")
"""Not true of a value that was taken out."""
_OF_ONE: Final = ("sequence_id", "ordering_key", "partition_key_b64_encoded", "null_partition_key")
"""Fields that the metadata of one message in a batch has as well."""


def records_of(messages: Messages, partition: int, after: MessageId | None = None) -> pa.Table:
    """A row per record, with columns that `append` takes, of messages behind `after`. Raises `DamagedError`."""
    whole = np.isin(messages.kind, (Kind.SEALED_BATCH, Kind.CHUNK))
    values, metadata = _values(messages), _metadata(messages, whole)
    count, event_time = len(messages), messages.event_time
    ledger, entry, index = messages.ledger, messages.entry, messages.batch_index
    keys = messages.key.to_pylist() if whole.any() else None
    table = pa.table(
        {
            PARTITION: pa.repeat(pa.scalar(partition, pa.int32()), count),
            TIMESTAMP: pa.array(messages.publish_time.astype(np.int64)),
            KEY: messages.key if keys is None else pa.array(keys, pa.binary(), mask=whole),
            VALUE: values,
            HEADERS: properties_of(messages),
            LEDGER_ID: pa.array(ledger),
            ENTRY_ID: pa.array(entry),
            BATCH_INDEX: pa.array(index.astype(np.int32)),
            EVENT_TIME: pa.array(event_time.astype(np.int64), mask=event_time == 0),
            PASSED_THROUGH: pa.array(whole),
            METADATA: metadata,
        }
    )
    kept = ~messages.compacted_out & (messages.kind != Kind.MARKER)
    if after is not None and after.batch_index != NO_BATCH:  # the copy ends within a batch
        kept &= (ledger != after.ledger) | (entry != after.entry) | (index > after.batch_index)
    return table if kept.all() else table.filter(pa.array(kept))


def _values(messages: Messages) -> pa.Array:
    """Payloads: null where the message says so, and as they are where the entry cannot be opened."""
    values = values_of(messages)
    sealed = np.flatnonzero(~np.isin(messages.kind, (Kind.PLAIN, Kind.MARKER)))
    empty = np.flatnonzero(messages.empty & (messages.kind == Kind.PLAIN)).tolist()
    null = [row for row in empty if _is_null(messages, row)]
    if not len(sealed) and not null:
        return values
    found = values.to_pylist()
    for row in sealed.tolist():
        found[row] = entry_of(messages.entries[int(messages.row[row])]).payload
    for row in null:
        found[row] = None
    return pa.array(found, pa.binary())


def _is_null(messages: Messages, row: int) -> bool:
    one = _one(messages, row)
    return messages.entry_metadata(row).null_value if one is None else one.null_value


def _one(messages: Messages, row: int) -> SingleMessageMetadata | None:
    """The metadata of a message in an open batch."""
    start = int(messages.stored.start[row])
    if start < 0:
        return None
    return SingleMessageMetadata.FromString(messages.buffer.data[start + 4 : int(messages.payload_start[row])])


def _metadata(messages: Messages, whole: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Array:
    stored = metadata_of(messages).to_pylist()
    batched = (messages.stored.start >= 0).tolist()
    of_entries: dict[int, bytes] = {}
    found: list[bytes] = []
    for row, (number, own, in_batch) in enumerate(zip(messages.row.tolist(), stored, batched, strict=True)):
        if whole[row]:
            found.append(own)
            continue
        if number not in of_entries:
            opened = messages.kind[row] == Kind.PLAIN
            of_entries[number] = _rest(messages.entry_metadata(row), opened=opened)
        found.append(of_entries[number] + (_of_one(own) if in_batch else b""))
    return pa.array(found, pa.binary())


def _rest(metadata: MessageMetadata, *, opened: bool) -> bytes:
    """The metadata of an entry without what records have as columns."""
    for name in (*_IN_COLUMNS, *(_OF_THE_PAYLOAD if opened else ())):
        metadata.ClearField(name)
    return metadata.SerializeToString()


def _of_one(stored: bytes) -> bytes:
    """What a message in a batch has of its own; it goes behind that of the entry, whose fields it overrides."""
    one = SingleMessageMetadata.FromString(stored)
    rest = MessageMetadata()
    for name in _OF_ONE:
        if one.HasField(name):
            setattr(rest, name, getattr(one, name))
    return rest.SerializePartialToString()
